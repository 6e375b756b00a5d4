SELECT min(run_at) FROM treppe_live WHERE parked = 0 AND suspect = 1
