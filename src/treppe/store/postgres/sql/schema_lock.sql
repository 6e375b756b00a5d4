-- Who starts at the same time waits here; who holds a table for long makes this give up, not the application wait.
SET LOCAL lock_timeout = '5s';
DO $lock$ BEGIN PERFORM pg_advisory_xact_lock(8392871364); END $lock$;
