-- What there is to do, in one statement. $1 expired jobs are looked for behind this number, $2 of them at a time; $3 jobs
-- behind their keys from there on; $4 events from there on, older than $5 seconds; $6 is the most of a kind.
WITH c AS MATERIALIZED (
  SELECT extract(epoch FROM clock_timestamp())::double precision AS now
), slice AS MATERIALIZED (
  SELECT seq, expires_at, parked, running FROM treppe.live WHERE seq > $1 ORDER BY seq LIMIT $2
), behind AS MATERIALIZED (
  SELECT seq, queue, okey FROM treppe.live WHERE parked = 1 AND seq > $3 ORDER BY seq LIMIT $6
), free AS (
  SELECT DISTINCT queue, okey FROM behind b
  WHERE (SELECT s.seq FROM treppe.slot s WHERE s.queue = b.queue AND s.okey = b.okey AND s.n = 0) IS NULL
), old AS MATERIALIZED (
  SELECT e.seq, e.at FROM treppe.event e WHERE e.seq > $4 ORDER BY e.seq LIMIT $6
)
SELECT EXISTS (SELECT FROM treppe.worker w, c WHERE w.gone OR w.until <= c.now) AS gone,
       ARRAY(SELECT seq FROM slice, c WHERE expires_at <= c.now AND parked IN (0, 1) AND NOT running ORDER BY seq LIMIT $6)
         AS expired,
       (SELECT count(*) FROM slice) AS slice_size, (SELECT max(seq) FROM slice) AS slice_end,
       ARRAY(SELECT l.seq FROM treppe.live l WHERE l.parked = 3
             AND l.run_at <= (SELECT extract(epoch FROM clock_timestamp())::double precision) ORDER BY l.run_at LIMIT $6)
         AS unconfirmed,
       ARRAY(SELECT queue FROM free ORDER BY queue, okey) AS queues,
       ARRAY(SELECT okey FROM free ORDER BY queue, okey) AS keys,
       (SELECT count(*) FROM behind) AS behind_size, (SELECT max(seq) FROM behind) AS behind_end,
       EXISTS (SELECT FROM treppe.attempt a
               WHERE a.keep_until <= (SELECT extract(epoch FROM clock_timestamp())::double precision)) AS ended,
       ARRAY(SELECT seq FROM old, c WHERE at <= c.now - $5::double precision
             AND (SELECT j.seq FROM treppe.job j WHERE j.event = old.seq LIMIT 1) IS NULL ORDER BY seq) AS events,
       (SELECT count(*) FROM old) AS old_size, (SELECT max(seq) FROM old, c WHERE at <= c.now - $5::double precision) AS old_end,
       (SELECT count(*) FROM (SELECT FROM treppe.count LIMIT $6) x) AS counts,
       (SELECT count(*) FROM (SELECT FROM treppe.health LIMIT $6) x) AS healths,
       (SELECT least(
          (SELECT min(w.until) FROM treppe.worker w WHERE NOT w.gone AND w.until > c.now),
          (SELECT min(s.expires_at) FROM slice s WHERE s.expires_at > c.now AND s.parked IN (0, 1) AND NOT s.running),
          (SELECT l.run_at FROM treppe.live l WHERE l.parked = 3
           AND l.run_at > (SELECT extract(epoch FROM clock_timestamp())::double precision) ORDER BY l.run_at LIMIT 1)
        ) - c.now FROM c) AS next_in
