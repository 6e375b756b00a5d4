DELETE FROM treppe_value WHERE name = ?1 AND value = ?2
