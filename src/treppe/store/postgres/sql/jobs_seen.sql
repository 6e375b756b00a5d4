SELECT id, seq, queue, okey, first_due FROM treppe.job WHERE id = ANY($1::text[])
