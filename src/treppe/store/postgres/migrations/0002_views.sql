-- A job as people see it; the state is derived, never stored.
CREATE VIEW treppe.look AS
SELECT j.seq, j.id, j.task, j.queue, j.okey, j.priority, j.repeat, j.attempts, j.first_due, j.deadline, j.created_at,
       CASE WHEN l.seq IS NOT NULL
            THEN CASE WHEN l.running THEN 'running' WHEN l.parked = 2 THEN 'unclear' WHEN l.parked = 3 THEN 'handed_over'
                      ELSE 'waiting' END
            WHEN d.seq IS NOT NULL THEN 'dead'
            WHEN a.event = 'cancel' THEN 'cancelled'
            WHEN a.event = 'move' THEN 'moved'
            ELSE 'done' END AS state,
       coalesce(l.token, d.token, a.token) AS token,
       coalesce(l.claims, d.claims, a.token) AS claims,
       coalesce(l.charged, d.charged, 0) AS charged,
       coalesce(l.crashes, d.crashes, 0) AS crashes,
       coalesce(l.due_at, j.first_due) AS due_at,
       l.run_at, l.expires_at, coalesce(l.suspect, false) AS suspect, coalesce(l.cancel, false) AS cancel,
       CASE WHEN l.seq IS NULL THEN coalesce(d.dead_at, a.finished_at) END AS ended_at,
       coalesce(d.reason, a.error, '') AS error,
       e.source, e.id AS event_id,
       CASE WHEN l.parked = 1 THEN coalesce(
         (SELECT o.id FROM treppe.slot s JOIN treppe.job o ON o.seq = s.seq
          WHERE s.queue = j.queue AND s.okey = j.okey AND s.n = 0),
         (SELECT o.id FROM treppe.live h JOIN treppe.job o ON o.seq = h.seq
          WHERE h.queue = j.queue AND h.okey = j.okey ORDER BY h.due_at, h.seq LIMIT 1)) END AS behind
FROM treppe.job j
LEFT JOIN treppe.live l ON l.seq = j.seq
LEFT JOIN treppe.dead d ON d.seq = j.seq
LEFT JOIN treppe.event e ON e.seq = j.event
LEFT JOIN LATERAL (SELECT x.event, x.token, x.finished_at, x.error FROM treppe.attempt x
                   WHERE x.seq = j.seq ORDER BY x.n DESC LIMIT 1) a ON true;

CREATE VIEW treppe.seen AS         -- the same with times that people can read: for psql and reports
SELECT seq, id, task, queue, okey AS key, state, priority, attempts, claims, charged, crashes, error, behind,
       source, event_id AS event, to_timestamp(created_at) AS created_at, to_timestamp(due_at) AS due_at,
       to_timestamp(run_at) AS run_at, to_timestamp(first_due + deadline) AS deadline_at,
       to_timestamp(expires_at) AS expires_at, to_timestamp(ended_at) AS ended_at
FROM treppe.look;
