INSERT INTO treppe.worker AS w (id, name, until) VALUES ($1, $2, extract(epoch FROM clock_timestamp()) + $3::double precision)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, until = excluded.until WHERE NOT w.gone
RETURNING 1
