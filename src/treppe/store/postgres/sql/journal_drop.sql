DELETE FROM treppe.journal WHERE stream = $1 AND seq = ANY($2) RETURNING seq
