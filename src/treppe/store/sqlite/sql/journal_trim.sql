DELETE FROM treppe_journal WHERE stream = ?1 AND seq IN (
  SELECT seq FROM treppe_journal WHERE stream = ?1 AND seq <= (
    SELECT seq FROM treppe_journal WHERE stream = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)
  ORDER BY seq LIMIT 500)
