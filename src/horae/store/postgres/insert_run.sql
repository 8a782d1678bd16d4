-- Runs that did not exist, as one array a column.
INSERT INTO run (id, schedule_id, incarnation, nominal, origin, overlap, status, fire_at, start_at, action, action_id,
    reason, attempt, epoch, started_at, ended_at, author, note, input)
SELECT *
FROM unnest(:id::text[], :schedule_id::text[], :incarnation::bigint[], :nominal::bigint[], :origin::text[],
    :overlap::text[], :status::text[], :fire_at::bigint[], :start_at::bigint[], :action::text[], :action_id::text[],
    :reason::text[], :attempt::bigint[], :epoch::bigint[], :started_at::bigint[], :ended_at::bigint[],
    :author::text[], :note::text[], :input::text[]) AS new (id, schedule_id, incarnation, nominal, origin, overlap,
    status, fire_at, start_at, action, action_id, reason, attempt, epoch, started_at, ended_at, author, note, input)
