-- Where new schedules stand, and when to look at them.
INSERT INTO due (schedule_id, cursor, next_at)
SELECT * FROM unnest(:id::text[], :cursor::bigint[], :next_at::bigint[])
