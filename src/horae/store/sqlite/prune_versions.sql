-- Delete the oldest versions that are past the retention of their schedules; a few at a time.
DELETE FROM version WHERE schedule_id = new.schedule_id AND (generation, version) IN (
    SELECT generation, version FROM version
    WHERE schedule_id = new.schedule_id AND until_ms < new.before
    ORDER BY generation, version LIMIT new.max_rows
)
