-- How an attempt ended, under the claim that made it; a stale claim matches no row.
UPDATE run SET status = :status, started_at = :started_at, ended_at = :ended_at, result = :result, failure = :failure,
    reason = :reason, start_at = coalesce(:start_at, start_at), failures = :failures, refusals = :refusals, crashes = :crashes, stop = '',
    report_by = NULL
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
