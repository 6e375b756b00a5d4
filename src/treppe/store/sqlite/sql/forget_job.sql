DELETE FROM treppe_job WHERE seq = ?
