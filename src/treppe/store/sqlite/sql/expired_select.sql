-- A walk in slices instead of an index that every job would pay for.
SELECT seq FROM treppe_live WHERE seq > ?2 AND seq <= ?3 AND expires_at <= ?1 AND parked IN (0, 1) ORDER BY seq LIMIT ?4
