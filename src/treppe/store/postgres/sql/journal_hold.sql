SELECT pg_advisory_xact_lock(hashtextextended('treppe.journal:' || $1, 0))
