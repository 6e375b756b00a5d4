DELETE FROM treppe_journal WHERE stream = ? AND seq = ?
