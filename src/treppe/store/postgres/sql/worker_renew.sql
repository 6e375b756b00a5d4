UPDATE treppe.worker SET until = extract(epoch FROM clock_timestamp()) + $2::double precision WHERE id = $1 AND NOT gone RETURNING 1
