UPDATE treppe_worker SET gone = 1 WHERE until <= ?
