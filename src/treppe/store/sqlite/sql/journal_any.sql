SELECT 1 FROM treppe_journal WHERE stream = ? LIMIT 1
