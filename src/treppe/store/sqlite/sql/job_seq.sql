SELECT seq, queue, okey, first_due FROM treppe_job WHERE id = ?
