-- How an attempt ended, under the claim that made it; a stale claim matches no row. The token of an attempt is for no other.
UPDATE run SET status = :status, ended_at = :ended_at, result = :result, failure = :failure, reason = :reason,
    start_at = coalesce(:start_at, start_at), failures = :failures, refusals = :refusals, crashes = :crashes, stop = '',
    report_by = NULL, token_hash = CASE WHEN :status = 'pending' THEN NULL ELSE token_hash END
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
