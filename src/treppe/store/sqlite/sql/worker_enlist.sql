INSERT INTO treppe_worker (id, name, until) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, until = excluded.until WHERE gone = 0
