SELECT queue, count(*) FROM treppe_dead GROUP BY queue
