-- A run that nobody works on: released, claimed, or ended without a start. The token of an attempt is for no other.
UPDATE run SET status = :status, reason = :reason, attempt = :attempt, epoch = :epoch, started_at = :started_at,
    ended_at = :ended_at, token_hash = NULL
WHERE id = :id AND status IN ('pending', 'retrying', 'starting')
