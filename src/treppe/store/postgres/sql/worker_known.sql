SELECT 1 FROM treppe.worker WHERE id = $1 AND NOT gone
