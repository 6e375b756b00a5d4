WITH counted AS (INSERT INTO treppe.count (name, n) VALUES ('accepted', $1))
SELECT pg_notify('treppe', $2::text) WHERE $2::text IS NOT NULL
