INSERT INTO treppe_value (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
