INSERT INTO treppe_schema (step, at) VALUES (?, ?)
