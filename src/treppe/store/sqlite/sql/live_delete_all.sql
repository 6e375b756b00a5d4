DELETE FROM treppe_live WHERE seq IN (SELECT value FROM json_each(?))
