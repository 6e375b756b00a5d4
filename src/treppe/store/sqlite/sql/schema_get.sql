SELECT count(*) FROM treppe_schema
