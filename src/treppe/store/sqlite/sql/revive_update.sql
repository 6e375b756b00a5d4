UPDATE treppe_live
SET parked = 0, worker = NULL, run_at = ?2, lapsed = 0, suspect = 0, cancel = 0, claims = 0, charged = 0, crashes = 0, slotted = 0,
    seen_ok = NULL, seen_tried = NULL, seen_at = NULL,
    expires_at = ?2 + (SELECT expires FROM treppe_job WHERE treppe_job.seq = ?1)
WHERE seq = ?1
