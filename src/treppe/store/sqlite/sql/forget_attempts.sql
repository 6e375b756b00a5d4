DELETE FROM treppe_attempt WHERE seq = ?
