DELETE FROM treppe_slot WHERE seq = ? AND okey <> ''
