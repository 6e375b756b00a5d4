SELECT n FROM treppe.slot WHERE queue = $1 AND okey = '' AND n > 0
