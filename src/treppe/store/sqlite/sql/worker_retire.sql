UPDATE treppe_worker SET until = 0 WHERE id = ?1
