INSERT INTO treppe.schema (step) VALUES ($1);
