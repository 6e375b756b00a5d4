DELETE FROM treppe.worker WHERE id = ANY($1::bigint[]) AND gone RETURNING id
