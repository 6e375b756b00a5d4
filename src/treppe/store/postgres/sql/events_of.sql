SELECT seq, source, id, topic, body, content_type, headers FROM treppe.event WHERE seq = ANY($1::bigint[])
