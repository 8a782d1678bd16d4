-- A schedule's place after a decision, when it was attempted, and how many runs it started.
UPDATE due SET cursor = :cursor, next_at = :next_at, attempted_at = coalesce(:attempted_at, attempted_at),
    started = started + :started
WHERE schedule_id = :schedule_id
