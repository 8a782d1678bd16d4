-- Delete the oldest versions that are past the retention of their schedules; a few at a time.
-- The `ANY` makes the server find them by their schedules, also if it thinks the table small.
DELETE FROM version
USING {new_rows} CROSS JOIN LATERAL (
    SELECT v.schedule_key, v.generation, v.version FROM version AS v
    WHERE v.schedule_key = new.schedule_key AND v.until_ms < new.before
    ORDER BY v.generation, v.version LIMIT new.max_rows
) AS old
WHERE version.schedule_key {among(schedule_key, text)} AND version.schedule_key = old.schedule_key
    AND version.generation = old.generation AND version.version = old.version
