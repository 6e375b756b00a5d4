SELECT run_at, seq FROM treppe_live WHERE queue = ? AND band = ? AND parked = 0 AND suspect = 0
ORDER BY run_at, seq LIMIT 1
