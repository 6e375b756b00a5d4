SELECT token, queue FROM treppe_dead WHERE seq = ?
