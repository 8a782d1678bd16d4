-- Who brings these tokens may report on attempts; a stale claim matches no row.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET token_hash = new.token_hash
FROM unnest(:id::text[], :epoch::bigint[], :attempt::bigint[], :token_hash::text[])
    AS new (id, epoch, attempt, token_hash)
WHERE run.id = new.id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
