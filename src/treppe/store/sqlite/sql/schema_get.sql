SELECT step FROM treppe_schema
