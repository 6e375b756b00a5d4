DELETE FROM treppe_worker WHERE id = ? AND gone = 1
