-- A schedule's place after a decision.
UPDATE due SET cursor = :cursor, next_at = :next_at WHERE schedule_id = :schedule_id
