INSERT INTO treppe.journal (stream, at, record)
SELECT 'report:' || $1, (SELECT extract(epoch FROM clock_timestamp())::double precision), record
FROM unnest($2::bytea[]) WITH ORDINALITY AS given (record, n)
ORDER BY n
