DO $once$ BEGIN
IF NOT EXISTS (SELECT FROM treppe.schema WHERE step = $1) THEN EXECUTE $step$
$2
$step$; END IF;
END $once$;
