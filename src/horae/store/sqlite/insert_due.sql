-- Where a new schedule stands, and when to look at it.
INSERT INTO due (schedule_id, cursor, next_at) VALUES (:schedule_id, :cursor, :next_at)
