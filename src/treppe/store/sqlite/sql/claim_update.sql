UPDATE treppe_live
SET parked = 4, worker = ?, token = token + 1, claims = claims + ?, lapsed = 0, started_at = ?, slotted = ?
WHERE seq = ?
