SELECT id FROM treppe.worker WHERE id = ANY($1::bigint[]) AND NOT gone
