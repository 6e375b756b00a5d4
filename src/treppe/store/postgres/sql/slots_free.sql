DELETE FROM treppe.slot WHERE seq = ANY($1::bigint[]) AND n > 0
