INSERT INTO treppe.slot (queue, okey, n, seq) SELECT $1, '', n, seq FROM unnest($2::integer[], $3::bigint[]) AS g (n, seq)
