-- The attempts of a run that were followed by another, in order.
SELECT run_id, attempt, epoch, reason, failure, started_at, ended_at FROM attempt WHERE run_id = :id ORDER BY attempt
