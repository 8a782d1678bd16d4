-- Results for the next runs, if their schedules are still those that they ran for.
INSERT INTO last_outcome (schedule_id, result)
SELECT new.schedule_id, new.result
FROM unnest(:schedule_id::text[], :generation::bigint[], :result::text[]) AS new (schedule_id, generation, result)
    JOIN schedule AS s ON s.id = new.schedule_id AND s.generation = new.generation
ON CONFLICT (schedule_id) DO UPDATE SET result = excluded.result, failure = NULL
