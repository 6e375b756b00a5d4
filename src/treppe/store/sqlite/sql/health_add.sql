INSERT INTO treppe_health (task, ok, tried) VALUES (?, ?, ?)
ON CONFLICT (task) DO UPDATE SET ok = ok + excluded.ok, tried = tried + excluded.tried
