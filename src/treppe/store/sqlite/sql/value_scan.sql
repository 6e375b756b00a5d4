SELECT name, value FROM treppe_value WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT ?3
