-- The places of schedules after a decision, when they were attempted, and what that adds to their counts.
UPDATE due SET cursor = new.cursor, next_at = new.next_at,
    attempted_at = coalesce(new.attempted_at, due.attempted_at), started = due.started + new.started,
    skipped = due.skipped + new.skipped, missed = due.missed + new.missed, dropped = due.dropped + new.dropped
FROM unnest(:schedule_id::text[], :cursor::bigint[], :next_at::bigint[], :attempted_at::bigint[], :started::bigint[],
    :skipped::bigint[], :missed::bigint[], :dropped::bigint[])
    AS new (schedule_id, cursor, next_at, attempted_at, started, skipped, missed, dropped)
WHERE due.schedule_id = new.schedule_id
