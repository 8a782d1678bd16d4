-- The runs of a node that were asked to stop.
SELECT id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id, reason,
    attempt, epoch, failures, refusals, crashes, stop, started_at, ended_at, author, note, input, result, failure
FROM run
WHERE epoch = :epoch AND status = 'running' AND stop <> ''
