SELECT seq, queue, okey, first_due FROM treppe.job WHERE id = $1
