INSERT INTO treppe_dead (seq, queue, dead_at, reason, token, claims, charged, crashes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
