INSERT INTO treppe_event (seq, source, id, topic, body, content_type, headers, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source, id) DO NOTHING
