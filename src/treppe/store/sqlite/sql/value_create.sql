INSERT INTO treppe_value (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING
