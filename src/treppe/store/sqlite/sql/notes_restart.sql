DELETE FROM treppe_note WHERE seq = ?1 AND substr(name, 1, length(?2)) = ?2
