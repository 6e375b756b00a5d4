INSERT INTO treppe.count (name, n) VALUES ($1, $2)
