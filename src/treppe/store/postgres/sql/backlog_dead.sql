SELECT queue, count(*) FROM treppe.dead GROUP BY queue
