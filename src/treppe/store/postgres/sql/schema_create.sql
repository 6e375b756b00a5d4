-- Without CREATE SCHEMA IF NOT EXISTS, which needs the right to create one even where there is one.
DO $make$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'treppe') THEN CREATE SCHEMA treppe; END IF;
END $make$;
CREATE TABLE IF NOT EXISTS treppe.schema (step text PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp());
