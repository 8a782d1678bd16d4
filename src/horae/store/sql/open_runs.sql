-- The open runs of some schedules, oldest first; their inputs are not read.
SELECT {columns(run_without_input)} FROM run
WHERE schedule_key {among(keys, text)} AND {open(status)}
ORDER BY number
