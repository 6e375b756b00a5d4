-- A walk in slices instead of an index that every job would pay for: of this slice, who has expired; and where it ends.
SELECT seq, expires_at <= ?1 AND parked IN (0, 1) FROM treppe_live WHERE seq > ?2 ORDER BY seq LIMIT ?3
