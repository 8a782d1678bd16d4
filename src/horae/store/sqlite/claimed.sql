-- The runs that some nodes have claimed and not finished.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure
FROM run INDEXED BY run_open
WHERE status IN ('pending', 'retrying', 'starting', 'running') AND status = 'running'
    AND epoch IN (SELECT value FROM json_each(:epochs))
ORDER BY number
LIMIT :limit
