SELECT seq, source, id, topic, body, content_type, headers FROM treppe_event WHERE seq IN (SELECT value FROM json_each(?))
