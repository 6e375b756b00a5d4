UPDATE treppe_live
SET parked = 4, worker = ?1, token = token + 1, claims = claims + ?2, lapsed = 0, started_at = ?3, slotted = ?4
WHERE seq IN (SELECT value FROM json_each(?5))
