-- Runs that nobody works on: released, claimed, or ended without a start. The token of an attempt is for no other.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET status = new.status, reason = new.reason, attempt = new.attempt, epoch = new.epoch, started_at =
    new.started_at, ended_at = new.ended_at, token_hash = NULL
FROM unnest(:id::text[], :status::text[], :reason::text[], :attempt::bigint[], :epoch::bigint[],
    :started_at::bigint[], :ended_at::bigint[]) AS new (id, status, reason, attempt, epoch, started_at, ended_at)
WHERE run.id = new.id AND coalesce(run.status, '') IN ('pending', 'retrying', 'starting')
