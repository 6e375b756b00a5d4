DELETE FROM treppe.live WHERE seq = ANY($1::bigint[])
