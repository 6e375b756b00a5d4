INSERT INTO treppe_journal (stream, at, record) VALUES (?, ?, ?)
