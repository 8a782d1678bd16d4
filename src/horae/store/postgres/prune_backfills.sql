-- The backfills of schedules that ended before their retention.
DELETE FROM backfill
USING unnest(:schedule_id::text[], :before::bigint[]) AS past (schedule_id, before)
WHERE backfill.schedule_id = past.schedule_id AND status <> 'open' AND ended_at < past.before
