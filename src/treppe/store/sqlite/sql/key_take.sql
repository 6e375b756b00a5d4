INSERT INTO treppe_slot (queue, okey, n, seq) VALUES (?, ?, 0, ?)
ON CONFLICT (queue, okey, n) DO NOTHING
