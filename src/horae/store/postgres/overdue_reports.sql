-- Runs that others go on with and of which something should have been heard, the longest overdue first.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure,
    token_hash, report_by
FROM run
WHERE status = 'running' AND report_by IS NOT NULL AND report_by <= :now
ORDER BY report_by
LIMIT :limit
