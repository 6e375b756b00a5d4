DELETE FROM treppe_note WHERE seq = ?
