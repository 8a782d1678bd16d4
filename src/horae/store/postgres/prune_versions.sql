-- Delete the oldest versions that are past the retention of their schedules; a few at a time.
-- The `ANY` makes the server find them by their schedules, also if it thinks the table small.
DELETE FROM version
USING {new_rows} CROSS JOIN LATERAL (
    SELECT v.schedule_id, v.generation, v.version FROM version AS v
    WHERE v.schedule_id = new.schedule_id AND v.until_ms < new.before
    ORDER BY v.generation, v.version LIMIT new.max_rows
) AS old
WHERE version.schedule_id {among(schedule_id, text)} AND version.schedule_id = old.schedule_id
    AND version.generation = old.generation AND version.version = old.version
