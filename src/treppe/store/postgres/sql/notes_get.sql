SELECT n.name, n.value FROM treppe.note n JOIN treppe.job j ON j.seq = n.seq WHERE j.id = $1
