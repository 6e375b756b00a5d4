SELECT source, id, body, headers, content_type, topic FROM treppe.event WHERE source = $1 AND id = $2
