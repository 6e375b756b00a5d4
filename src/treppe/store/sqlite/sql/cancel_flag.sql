UPDATE treppe_live SET cancel = 1 WHERE seq = ?
