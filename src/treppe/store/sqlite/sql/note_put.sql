INSERT INTO treppe_note (seq, name, value)
SELECT ?1, ?4, ?5 FROM treppe_live WHERE seq = ?1 AND token = ?2 AND worker = ?3 AND parked = 4
ON CONFLICT (seq, name) DO UPDATE SET value = excluded.value
