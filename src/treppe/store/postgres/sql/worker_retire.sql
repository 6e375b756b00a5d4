UPDATE treppe.worker SET until = 0, gone = true WHERE id = $1 RETURNING 1
