DELETE FROM treppe_dead WHERE seq = ?
