-- The backfills of a schedule that ended before its retention.
DELETE FROM backfill WHERE schedule_id = :schedule_id AND status <> 'open' AND ended_at < :before
