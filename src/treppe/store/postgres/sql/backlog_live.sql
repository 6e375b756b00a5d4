SELECT queue, CASE WHEN running THEN 'running' WHEN parked = 0 THEN 'waiting' WHEN parked = 1 THEN 'behind'
                   WHEN parked = 2 THEN 'unclear' ELSE 'handed_over' END AS state, task,
       count(*) FILTER (WHERE due_at > $1),
       count(*) FILTER (WHERE due_at <= $1 AND run_at > $1),
       count(*) FILTER (WHERE due_at <= $1 AND run_at <= $1),
       min(due_at) FILTER (WHERE due_at <= $1)
FROM treppe.live GROUP BY 1, 2, 3
