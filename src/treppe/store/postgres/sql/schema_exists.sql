-- From the catalogs themselves: to_regclass() may still know an answer from before we waited for the lock.
SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'treppe' AND c.relname = 'schema'
