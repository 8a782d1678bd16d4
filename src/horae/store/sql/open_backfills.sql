-- The open backfills of some schedules, oldest first.
SELECT {columns(backfill)} FROM backfill
WHERE schedule_key {among(keys, text)} AND status = 'open'
ORDER BY number
