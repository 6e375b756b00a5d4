SELECT to_regclass('treppe.schema')::text
