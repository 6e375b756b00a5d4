UPDATE treppe_live SET parked = 0 WHERE seq = ? AND parked = 1
