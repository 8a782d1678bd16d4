-- A run that nobody works on: released, claimed, or ended without a start.
UPDATE run SET status = :status, reason = :reason, attempt = :attempt, epoch = :epoch, started_at = :started_at,
    ended_at = :ended_at
WHERE id = :id AND status IN ('pending', 'starting')
