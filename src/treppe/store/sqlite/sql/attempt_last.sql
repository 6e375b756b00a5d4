SELECT coalesce(max(n), 0) FROM treppe_attempt WHERE seq = ?
