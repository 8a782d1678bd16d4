-- What schedules were before edits that are past their retention.
DELETE FROM version
USING unnest(:schedule_id::text[], :before::bigint[]) AS past (schedule_id, before)
WHERE version.schedule_id = past.schedule_id AND until < past.before
