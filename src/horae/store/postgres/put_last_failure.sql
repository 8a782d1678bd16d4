-- Failures for the next runs, which get the last results too, if their schedules are still those that they ran for.
INSERT INTO last_outcome (schedule_id, failure)
SELECT new.schedule_id, new.failure
FROM unnest(:schedule_id::text[], :generation::bigint[], :failure::text[]) AS new (schedule_id, generation, failure)
    JOIN schedule AS s ON s.id = new.schedule_id AND s.generation = new.generation
ON CONFLICT (schedule_id) DO UPDATE SET failure = excluded.failure
