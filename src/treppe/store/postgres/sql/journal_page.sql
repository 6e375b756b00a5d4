SELECT seq, at, record FROM treppe.journal WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3
