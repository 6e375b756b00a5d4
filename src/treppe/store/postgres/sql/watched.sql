-- The queues of whose pace something is known.
SELECT queue FROM unnest($1::text[]) AS q (queue)
WHERE EXISTS (SELECT FROM treppe.value WHERE name = 'flow:' || q.queue)
   OR EXISTS (SELECT FROM treppe.journal WHERE stream = 'report:' || q.queue)
