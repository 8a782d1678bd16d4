-- Runs that ended well and left nothing, if their schedules are still those that they ran for; only schedules that had
-- something have a row.
UPDATE last_outcome SET result = NULL, failure = NULL
FROM unnest(:ids::text[], :generations::bigint[]) AS ended (schedule_id, generation)
    JOIN schedule AS s ON s.id = ended.schedule_id AND s.generation = ended.generation
WHERE last_outcome.schedule_id = ended.schedule_id AND (last_outcome.result IS NOT NULL OR last_outcome.failure IS NOT NULL)
