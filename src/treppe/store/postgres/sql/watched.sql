-- The queues of whose pace something is known.
SELECT queue FROM unnest($1::text[]) AS q (queue)
WHERE (SELECT true FROM treppe.value WHERE name = 'flow:' || q.queue) IS NOT NULL
   OR (SELECT true FROM treppe.journal WHERE stream = 'report:' || q.queue LIMIT 1) IS NOT NULL
