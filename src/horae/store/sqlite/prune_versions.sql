-- Delete the oldest versions that are past the retention of their schedules; a few at a time.
DELETE FROM version WHERE schedule_key = new.schedule_key AND (generation, version) IN (
    SELECT generation, version FROM version
    WHERE schedule_key = new.schedule_key AND until_ms < new.before
    ORDER BY generation, version LIMIT new.max_rows
)
