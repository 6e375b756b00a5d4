SELECT ok, tried FROM treppe_health WHERE task = ?
