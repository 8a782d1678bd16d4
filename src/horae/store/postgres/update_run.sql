-- Runs that wait: released, or ended without a start.
UPDATE run SET status = new.status, reason = new.reason, attempt = new.attempt, epoch = new.epoch,
    started_at = new.started_at, ended_at = new.ended_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS new (id, status, reason, attempt, epoch, started_at, ended_at)
WHERE run.id = new.id AND run.status = 'pending'
