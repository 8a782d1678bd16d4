-- A run, with what a report on it must bring.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure,
    token_hash, report_by
FROM run
WHERE id = :id
