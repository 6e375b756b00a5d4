UPDATE treppe_live SET parked = ?2, run_at = ?3, crashes = ?4, lapsed = ?5, suspect = ?6, slotted = 0 WHERE seq = ?1
