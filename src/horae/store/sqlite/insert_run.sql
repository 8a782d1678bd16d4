-- A run that did not exist.
INSERT INTO run (id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action, action_id,
    reason, attempt, epoch, started_at, ended_at, author, note, input)
VALUES (:id, :schedule_id, :generation, :nominal, :origin, :overlap, :status, :fire_at, :start_at, :action, :action_id,
    :reason, :attempt, :epoch, :started_at, :ended_at, :author, :note, :input)
