-- The open runs of some schedules, oldest first.
SELECT {columns(run)} FROM run
WHERE schedule_id {among(ids, text)} AND status {open}
ORDER BY number
