UPDATE treppe.live SET cancel = true WHERE seq = ANY($1::bigint[])
