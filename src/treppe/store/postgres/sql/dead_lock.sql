SELECT seq, token FROM treppe.dead WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE
