-- The open backfills of some schedules, oldest first.
SELECT {columns(backfill)} FROM backfill
WHERE schedule_id {among(ids, text)} AND status = 'open'
ORDER BY number
