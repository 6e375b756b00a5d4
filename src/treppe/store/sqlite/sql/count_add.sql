INSERT INTO treppe_count (name, n) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET n = n + excluded.n
