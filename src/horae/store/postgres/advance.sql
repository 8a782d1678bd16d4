-- The places of schedules after a decision, when they were attempted, and how many runs they started.
UPDATE due SET cursor = new.cursor, next_at = new.next_at,
    attempted_at = coalesce(new.attempted_at, due.attempted_at), started = due.started + new.started
FROM unnest(:schedule_id::text[], :cursor::bigint[], :next_at::bigint[], :attempted_at::bigint[], :started::bigint[])
    AS new (schedule_id, cursor, next_at, attempted_at, started)
WHERE due.schedule_id = new.schedule_id
