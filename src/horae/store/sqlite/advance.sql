-- A schedule's place after a decision, when it was attempted, and what that adds to its counts.
UPDATE due SET cursor = :cursor, next_at = :next_at, attempted_at = coalesce(:attempted_at, attempted_at),
    started = started + :started, skipped = skipped + :skipped, missed = missed + :missed, dropped = dropped + :dropped
WHERE schedule_id = :schedule_id
