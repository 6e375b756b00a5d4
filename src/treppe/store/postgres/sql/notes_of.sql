SELECT seq, name, value FROM treppe.note WHERE seq = ANY($1::bigint[])
