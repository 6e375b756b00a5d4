-- The gate of a paced queue: whoever has it asks for the grant, and holds it until the commit. Nobody waits for it.
-- The clock is read once it is open: seen by an earlier one, what the last holder wrote would lie in the future.
SELECT pg_try_advisory_xact_lock(hashtextextended('treppe.flow:' || $1, 0)), extract(epoch FROM clock_timestamp())::double precision
