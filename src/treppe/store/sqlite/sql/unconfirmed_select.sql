SELECT seq FROM treppe_live INDEXED BY treppe_live_unconfirmed
WHERE parked = 3 AND run_at <= ?1 LIMIT ?2
