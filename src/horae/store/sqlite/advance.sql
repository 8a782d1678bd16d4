-- A schedule's place after a decision, and what that adds to its counts.
UPDATE due SET cursor = :cursor, next_at = :next_at, started = started + :started, skipped = skipped + :skipped,
    missed = missed + :missed, dropped = dropped + :dropped
WHERE schedule_id = :schedule_id
