-- How attempts ended, under the claims that made them; a stale claim matches no row.
UPDATE run SET status = new.status, ended_at = new.ended_at, result = new.result, failure = new.failure,
    reason = new.reason, start_at = coalesce(new.start_at, run.start_at)
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
    $9::bigint[]) AS new (run_id, epoch, attempt, status, ended_at, result, failure, reason, start_at)
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt
    AND run.status IN ('starting', 'running')
RETURNING run.schedule_id
