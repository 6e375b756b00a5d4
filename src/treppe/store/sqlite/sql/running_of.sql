SELECT seq, token, worker FROM treppe_live
WHERE seq IN (SELECT value FROM json_each(?)) AND parked = 4 AND lapsed = 0 AND cancel = 0
