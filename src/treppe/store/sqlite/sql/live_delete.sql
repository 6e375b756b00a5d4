DELETE FROM treppe_live WHERE seq = ?
