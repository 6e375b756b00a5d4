SELECT seq FROM treppe_slot WHERE queue = ? AND okey = ? AND n = 0
