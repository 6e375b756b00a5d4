SELECT id FROM treppe_worker WHERE gone = 1
