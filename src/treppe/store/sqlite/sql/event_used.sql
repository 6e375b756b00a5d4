SELECT 1 FROM treppe_job WHERE event = ? LIMIT 1
