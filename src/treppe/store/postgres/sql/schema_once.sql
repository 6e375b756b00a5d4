DO $once$ BEGIN
  IF NOT EXISTS (SELECT FROM treppe.schema WHERE step = $1) THEN EXECUTE $2; END IF;
END $once$;
