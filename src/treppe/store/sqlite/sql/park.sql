UPDATE treppe_live SET parked = 1 WHERE seq = ? AND parked = 0
