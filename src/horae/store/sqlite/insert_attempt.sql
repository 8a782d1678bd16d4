-- An attempt that is followed by another.
INSERT INTO attempt (run_id, attempt, epoch, reason, failure, started_at, ended_at)
VALUES (:run_id, :attempt, :epoch, :reason, :failure, :started_at, :ended_at)
ON CONFLICT DO NOTHING
