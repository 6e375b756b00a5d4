SELECT source, id, body, headers, content_type, topic FROM treppe_event WHERE source = ? AND id = ?
