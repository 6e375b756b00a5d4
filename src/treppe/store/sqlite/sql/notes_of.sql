SELECT seq, name, value FROM treppe_note WHERE seq IN (SELECT value FROM json_each(?))
