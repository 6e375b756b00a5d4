SELECT seq, at, record FROM treppe.journal WHERE stream = $1 AND ($2 = 0 OR seq < $2) ORDER BY seq DESC LIMIT $3
