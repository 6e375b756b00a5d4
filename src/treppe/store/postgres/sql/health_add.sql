INSERT INTO treppe.health (task, ok, tried) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])
