DELETE FROM treppe_note WHERE seq = ?1 AND name = ?2
