-- Fenced by the claim: who settles meanwhile waits, or has ended it before.
WITH mine AS (
  SELECT seq FROM treppe.live WHERE seq = $1 AND token = $2 AND worker = $3 AND running FOR SHARE
)
INSERT INTO treppe.note (seq, name, value) SELECT seq, $4, $5 FROM mine
ON CONFLICT (seq, name) DO UPDATE SET value = excluded.value
RETURNING 1
