SELECT 1 FROM treppe_worker WHERE until <= ? LIMIT 1
