DELETE FROM treppe.journal WHERE seq IN (
  SELECT seq FROM treppe.journal WHERE stream = $1 AND seq <= (
    SELECT seq FROM treppe.journal WHERE stream = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)
  ORDER BY seq LIMIT 500 FOR UPDATE SKIP LOCKED)
RETURNING seq
