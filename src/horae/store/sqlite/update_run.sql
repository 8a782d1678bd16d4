-- A run that waits: released, or ended without a start.
UPDATE run SET status = :status, reason = :reason, attempt = :attempt, epoch = :epoch, started_at = :started_at,
    ended_at = :ended_at
WHERE id = :id AND status = 'pending'
