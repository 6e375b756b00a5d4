INSERT INTO treppe.journal (stream, at, record)
SELECT $1, extract(epoch FROM clock_timestamp()), record FROM unnest($2::bytea[]) WITH ORDINALITY AS given (record, n) ORDER BY n
