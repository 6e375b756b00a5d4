SELECT name, sum(n)::bigint FROM treppe.count GROUP BY name
