WITH old AS MATERIALIZED (
  SELECT seq, task, ok, tried FROM treppe.health ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM treppe.health WHERE seq = ANY(ARRAY(SELECT seq FROM old))
)
INSERT INTO treppe.health (task, ok, tried) SELECT task, sum(ok), sum(tried) FROM old GROUP BY task ORDER BY task RETURNING seq
