-- A job that lost its slot by a lapse counts again, beyond the limit if need be; until there is room nobody else starts.
INSERT INTO treppe_slot (queue, okey, n, seq)
SELECT ?1, '', coalesce(max(n) + 1, 0), ?2 FROM treppe_slot WHERE queue = ?1 AND okey = ''
