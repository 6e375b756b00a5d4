SELECT 1 FROM treppe_worker WHERE id = ? AND gone = 0
