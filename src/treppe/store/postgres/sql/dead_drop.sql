DELETE FROM treppe.dead WHERE seq = ANY($1::bigint[])
