-- Update runs that no node works on: released, claimed, or ended without a start. A report token is for one attempt only.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET status = new.status, reason = new.reason, attempt = new.attempt, epoch = new.epoch,
    started_at_ms = new.started_at_ms, ended_at_ms = new.ended_at_ms, token_hash = NULL
{from_new}
WHERE run.id = new.id AND coalesce(run.status, '') IN ('pending', 'retrying', 'starting')
