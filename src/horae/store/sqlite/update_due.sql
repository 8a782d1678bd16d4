-- Where an edited schedule stands, and when to look at it.
UPDATE due SET cursor = :cursor, next_at = :next_at WHERE schedule_id = :id
