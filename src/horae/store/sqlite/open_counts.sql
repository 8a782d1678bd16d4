-- How many runs of some schedules wait, and how many go on.
SELECT schedule_id, status, count(*) FROM run
WHERE schedule_id IN (SELECT value FROM json_each(:ids)) AND status IN ('pending', 'retrying', 'starting', 'running')
GROUP BY schedule_id, status
