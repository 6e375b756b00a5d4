SELECT seq, token, worker FROM treppe_live
WHERE parked = 4 AND worker IN (SELECT value FROM json_each(?1))
ORDER BY seq LIMIT ?2
