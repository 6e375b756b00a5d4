SELECT max(seq), count(*) FROM (SELECT seq FROM treppe_live WHERE seq > ? ORDER BY seq LIMIT ?)
