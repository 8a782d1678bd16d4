-- Where a schedule stands, and when to look at it.
INSERT INTO due (schedule_id, cursor, next_at) VALUES ($1, $2, $3)
ON CONFLICT (schedule_id) DO UPDATE SET cursor = excluded.cursor, next_at = excluded.next_at
