-- By a human: do it again, with budgets and expiry anew.
UPDATE treppe.live l
SET parked = 0, running = false, worker = NULL, run_at = c.now, lapsed = 0, suspect = false, cancel = false, claims = 0,
    charged = 0, crashes = 0, slotted = false, seen_ok = NULL, seen_tried = NULL, seen_at = NULL,
    expires_at = c.now + j.expires
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) c, treppe.job j
WHERE l.seq = ANY($1::bigint[]) AND j.seq = ANY($1) AND j.seq = l.seq
