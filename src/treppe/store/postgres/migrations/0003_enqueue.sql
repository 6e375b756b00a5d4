-- Public: enqueue from a trigger, psql, PHP, Node or whatever else speaks SQL, in your own transaction.
--   SELECT * FROM treppe.enqueue('mail:42', 'shop.send_mail', '{"to": "ada@example.org"}');
-- It answers new, duplicate (the same work was enqueued before) or conflict (other work has this id), and raises for
-- neither. What is left out is as the task's code says; a task that is not known here is never repeated by itself.
CREATE FUNCTION treppe.enqueue(
  id text,
  task text,
  args json DEFAULT '{}',          -- the arguments by name, as one object
  queue text DEFAULT NULL,
  key text DEFAULT NULL,           -- jobs of one queue with one order key run one after the other
  due timestamptz DEFAULT NULL,    -- not before; now, if nothing is said
  OUT seq bigint,
  OUT outcome text
) LANGUAGE plpgsql AS $enqueue$
#variable_conflict use_column
DECLARE
  settings jsonb := coalesce((SELECT t.settings FROM treppe.task t WHERE t.name = enqueue.task), '{}');
  lane text := coalesce(enqueue.queue, settings ->> 'queue',
                        left(ltrim(regexp_replace(lower(enqueue.task), '[^a-z0-9_.:/-]', '-', 'g'), '_.:/-'), 128));
  line text := coalesce(enqueue.key, enqueue.args ->> (settings ->> 'key'));
  content bytea := convert_to(enqueue.args::text, 'UTF8');
  now float8 := extract(epoch FROM clock_timestamp());
  due_at float8 := coalesce(extract(epoch FROM enqueue.due), now);
  first record;
BEGIN
  IF enqueue.id IS NULL OR enqueue.id !~ '^[^\x01-\x1f\x7f-\x9f]{1,255}$' THEN
    RAISE EXCEPTION 'treppe.enqueue: the id must be text of 1 to 255 characters without control characters'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF enqueue.task IS NULL OR enqueue.task !~ '^[^\s\x01-\x1f\x7f-\x9f]{1,255}$' THEN
    RAISE EXCEPTION 'treppe.enqueue: the task must be text of 1 to 255 characters without spaces'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF lane !~ '^[a-z0-9][a-z0-9_.:/-]{0,127}$' THEN
    RAISE EXCEPTION 'treppe.enqueue: "%" is no name of a queue', lane
      USING HINT = 'Use up to 128 of a-z 0-9 _ . : / -, beginning with a letter or digit',
            ERRCODE = 'invalid_parameter_value';
  ELSIF line !~ '^[^\x01-\x1f\x7f-\x9f]{1,255}$' THEN
    RAISE EXCEPTION 'treppe.enqueue: the order key must be text of 1 to 255 characters without control characters'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF json_typeof(enqueue.args) IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION 'treppe.enqueue: the arguments must be one JSON object, by their names'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF length(content) > 262144 THEN
    RAISE EXCEPTION 'treppe.enqueue: the arguments have % bytes, 262144 are allowed', length(content)
      USING HINT = 'Put the data where the handler can fetch it, and enqueue its address',
            ERRCODE = 'invalid_parameter_value';
  END IF;
  LOOP
    INSERT INTO treppe.job AS j (id, task, queue, payload, content_type, okey, priority, repeat, attempts, crashes,
                                 first_due, expires, deadline, keep, skip_dead, created_at)
    VALUES (enqueue.id, enqueue.task, lane, content, 'application/json', line,
            coalesce((settings ->> 'priority')::smallint, 0), coalesce((settings ->> 'repeat')::smallint, 2),
            coalesce((settings ->> 'attempts')::integer, 5), coalesce((settings ->> 'crashes')::integer, 3), due_at,
            coalesce((settings ->> 'expires')::float8, 14 * 86400.0), (settings ->> 'deadline')::float8,
            coalesce((settings ->> 'keep')::float8, 30 * 86400.0),
            coalesce((settings ->> 'skip_dead')::boolean, false), now)
    ON CONFLICT (id) DO NOTHING RETURNING j.seq INTO enqueue.seq;
    IF enqueue.seq IS NOT NULL THEN
      INSERT INTO treppe.live (seq, queue, task, okey, band, due_at, run_at, repeat, attempts, max_crashes, expires_at,
                               half_at, deadline_at, skip_dead)
      SELECT j.seq, j.queue, j.task, j.okey, CASE WHEN j.priority >= 50 THEN 0 WHEN j.priority > 0 THEN 1
                                                  WHEN j.priority = 0 THEN 2 ELSE 3 END,
             j.first_due, j.first_due, j.repeat, j.attempts, j.crashes, j.first_due + j.expires,
             j.first_due + j.deadline / 2, j.first_due + j.deadline, j.skip_dead
      FROM treppe.job j WHERE j.seq = enqueue.seq;
      INSERT INTO treppe.count (name, n) VALUES ('accepted', 1);
      PERFORM pg_notify('treppe', lane);
      enqueue.outcome := 'new';
      RETURN;
    END IF;
    SELECT j.seq, j.task = enqueue.task AND j.queue = lane AND j.payload = content AS same INTO first
    FROM treppe.job j WHERE j.id = enqueue.id;
    IF FOUND THEN
      enqueue.seq := first.seq;
      enqueue.outcome := CASE WHEN first.same THEN 'duplicate' ELSE 'conflict' END;
      RETURN;
    END IF;
  END LOOP;  -- that job was forgotten in this very moment
END
$enqueue$;
