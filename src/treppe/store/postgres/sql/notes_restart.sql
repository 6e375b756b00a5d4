DELETE FROM treppe.note WHERE seq = ANY($1::bigint[]) AND starts_with(name, $2)
