SELECT seq, body FROM treppe_event WHERE source = ? AND id = ?
