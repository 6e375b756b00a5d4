SELECT seq, at, record FROM treppe_journal WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3
