SELECT step FROM treppe.schema
