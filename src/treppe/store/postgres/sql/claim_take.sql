-- Jobs that are locked begin to run: no indexed column changes. A key ($5) is taken by its unique slot; who loses it to
-- another transaction is left out.
WITH keyed AS (
  INSERT INTO treppe.slot AS s (queue, okey, n, seq)
  SELECT queue, okey, 0, seq FROM treppe.live WHERE seq = ANY($5::bigint[]) ORDER BY queue, okey
  ON CONFLICT (queue, okey, n) DO UPDATE SET seq = s.seq WHERE s.seq = excluded.seq
  RETURNING s.seq
), taken AS (
  UPDATE treppe.live l
  SET running = true, worker = $2, token = l.token + 1, claims = l.claims + $3::integer, lapsed = 0, slotted = $4,
      started_at = (SELECT extract(epoch FROM clock_timestamp())::double precision)
  WHERE l.seq = ANY($1::bigint[]) AND (l.okey IS NULL OR l.seq IN (SELECT seq FROM keyed))
  RETURNING l.seq, l.token, l.task, l.queue, l.okey, l.repeat, l.claims, l.charged, l.attempts, l.crashes, l.due_at,
            l.expires_at, l.deadline_at, l.seen_ok, l.seen_tried, l.seen_at, l.suspect, l.slotted
)
SELECT t.*, j.id, j.payload, j.content_type, j.event
FROM taken t CROSS JOIN LATERAL (SELECT * FROM treppe.job j WHERE j.seq = t.seq OFFSET 0) j
