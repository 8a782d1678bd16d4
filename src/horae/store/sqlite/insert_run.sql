-- A run that did not exist.
INSERT INTO run (id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, reason, attempt,
    epoch, started_at, ended_at, input, result, failure)
VALUES (:id, :schedule_id, :incarnation, :nominal, :origin, :overlap, :status, :fire_at, :start_at, :reason, :attempt,
    :epoch, :started_at, :ended_at, :input, :result, :failure)
