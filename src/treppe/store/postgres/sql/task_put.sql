-- The settings of tasks as their code says them, for treppe.enqueue(). Workers of an old and a new version may differ:
-- the one that starts last is right.
INSERT INTO treppe.task AS t (name, settings)
SELECT name, settings::jsonb FROM unnest($1::text[], $2::text[]) AS g (name, settings) ORDER BY name
ON CONFLICT (name) DO UPDATE SET settings = excluded.settings WHERE t.settings <> excluded.settings
RETURNING name
