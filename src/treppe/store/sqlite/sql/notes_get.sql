SELECT n.name, n.value FROM treppe_note n JOIN treppe_job j ON j.seq = n.seq WHERE j.id = ?
