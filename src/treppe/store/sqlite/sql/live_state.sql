SELECT parked, token, worker, lapsed, suspect, cancel, crashes, claims, charged, okey, slotted, skip_dead, queue, due_at, started_at
FROM treppe_live WHERE seq = ?
