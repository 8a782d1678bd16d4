-- Store the hashes of the report tokens of attempts. A stale claim matches no row.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET token_hash = new.token_hash
{from_new}
WHERE run.id = new.run_id AND run.epoch = new.epoch AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
