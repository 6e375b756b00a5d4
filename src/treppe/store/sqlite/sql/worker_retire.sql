UPDATE treppe_worker SET until = 0, gone = 1 WHERE id = ?1
