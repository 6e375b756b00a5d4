SELECT n FROM treppe_slot WHERE queue = ? AND okey = ''
