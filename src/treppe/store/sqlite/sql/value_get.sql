SELECT value FROM treppe_value WHERE name = ?
