DELETE FROM treppe.value WHERE name = $1 AND value = $2
