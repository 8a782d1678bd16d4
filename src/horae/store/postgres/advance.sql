-- The places of schedules after a decision.
UPDATE due SET cursor = new.cursor, next_at = new.next_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new (schedule_id, cursor, next_at)
WHERE due.schedule_id = new.schedule_id
