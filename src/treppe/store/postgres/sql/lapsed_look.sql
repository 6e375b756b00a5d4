-- Jobs in the hands of nobody who is alive, in a slice of all live jobs.
WITH slice AS MATERIALIZED (
  SELECT seq, worker, running FROM treppe.live WHERE seq > $1 ORDER BY seq LIMIT $2
)
SELECT ARRAY(SELECT seq FROM slice s WHERE s.running
             AND (SELECT w.id FROM treppe.worker w WHERE w.id = s.worker AND NOT w.gone) IS NULL ORDER BY seq LIMIT $3),
       (SELECT count(*) FROM slice), (SELECT max(seq) FROM slice)
