INSERT INTO treppe_slot (queue, okey, n, seq) VALUES (?, '', ?, ?)
