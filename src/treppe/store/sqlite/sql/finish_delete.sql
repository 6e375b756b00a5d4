DELETE FROM treppe_live WHERE seq = ? AND token = ? AND worker = ? AND parked = 4 AND lapsed = 0
