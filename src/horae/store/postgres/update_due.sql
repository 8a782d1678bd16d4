-- Where edited schedules stand, and when to look at them.
UPDATE due SET cursor = new.cursor, next_at = new.next_at
FROM unnest(:id::text[], :cursor::bigint[], :next_at::bigint[]) AS new (id, cursor, next_at)
WHERE due.schedule_id = new.id
