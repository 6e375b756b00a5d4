-- Names are compared byte by byte: the server's own collation may order them otherwise, and has no last character.
SELECT name, value FROM treppe.value WHERE starts_with(name, $1) ORDER BY name COLLATE "C" LIMIT $2
