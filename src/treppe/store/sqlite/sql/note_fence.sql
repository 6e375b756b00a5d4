SELECT 1 FROM treppe_live WHERE seq = ? AND token = ? AND worker = ? AND parked = 4
