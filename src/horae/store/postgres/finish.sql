-- How attempts ended, under the claims that made them; a stale claim matches no row.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET status = new.status, started_at = new.started_at, ended_at = new.ended_at, result = new.result,
    failure = new.failure, reason = new.reason, start_at = coalesce(new.start_at, run.start_at), failures = new.failures, refusals = new.refusals,
    crashes = new.crashes, stop = '', report_by = NULL
FROM unnest(:run_id::text[], :epoch::bigint[], :attempt::bigint[], :status::text[], :started_at::bigint[],
    :ended_at::bigint[], :result::text[], :failure::text[], :reason::text[], :start_at::bigint[], :failures::bigint[], :refusals::bigint[],
    :crashes::bigint[]) AS new (run_id, epoch, attempt, status, started_at, ended_at, result, failure, reason, start_at, failures,
    refusals, crashes)
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
