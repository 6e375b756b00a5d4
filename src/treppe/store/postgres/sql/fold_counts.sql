WITH old AS MATERIALIZED (
  SELECT seq, name, n FROM treppe.count ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM treppe.count WHERE seq = ANY(ARRAY(SELECT seq FROM old))
)
INSERT INTO treppe.count (name, n) SELECT name, sum(n) FROM old GROUP BY name ORDER BY name RETURNING seq
