SELECT task, sum(ok)::bigint, sum(tried)::bigint FROM treppe.health WHERE task = ANY($1::text[]) GROUP BY task
