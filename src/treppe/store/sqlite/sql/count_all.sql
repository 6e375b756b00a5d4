SELECT name, n FROM treppe_count
