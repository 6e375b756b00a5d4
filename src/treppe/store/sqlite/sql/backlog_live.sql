SELECT queue, parked, task,
       count(*) FILTER (WHERE due_at > ?1),
       count(*) FILTER (WHERE due_at <= ?1 AND run_at > ?1),
       count(*) FILTER (WHERE due_at <= ?1 AND run_at <= ?1),
       min(due_at) FILTER (WHERE due_at <= ?1)
FROM treppe_live GROUP BY queue, parked, task
