-- Unclear or handed over: out of everybody's reach until somebody says what happened.
UPDATE treppe_live
SET parked = ?2, run_at = ?3, crashes = ?4, lapsed = 0, suspect = 0, slotted = ?5,
    seen_ok = coalesce(?6, seen_ok), seen_tried = coalesce(?7, seen_tried), seen_at = coalesce(?8, seen_at)
WHERE seq = ?1
