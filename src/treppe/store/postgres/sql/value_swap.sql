UPDATE treppe.value SET value = $3 WHERE name = $1 AND value = $2
