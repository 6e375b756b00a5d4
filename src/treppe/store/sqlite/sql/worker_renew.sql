UPDATE treppe_worker SET until = ?2 WHERE id = ?1 AND gone = 0
