SELECT seq, token, worker FROM treppe_live
WHERE parked = 4 AND worker IN (SELECT value FROM json_each(?1)) AND seq > ?2
ORDER BY seq LIMIT ?3
