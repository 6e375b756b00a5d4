UPDATE treppe_live
SET parked = 0, worker = NULL, run_at = ?2, charged = charged + ?3, claims = claims - ?8, crashes = ?4, lapsed = 0, suspect = 0, slotted = 0,
    seen_ok = coalesce(?5, seen_ok), seen_tried = coalesce(?6, seen_tried), seen_at = coalesce(?7, seen_at)
WHERE seq = ?1
