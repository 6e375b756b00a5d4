-- The gate of a paced queue: whoever has it asks for the grant, and holds it until the commit. Nobody waits for it.
SELECT pg_try_advisory_xact_lock(hashtextextended('treppe.flow:' || $1, 0))
