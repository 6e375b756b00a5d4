DELETE FROM treppe_event WHERE seq = ?
