SELECT value FROM treppe.value WHERE name = $1
