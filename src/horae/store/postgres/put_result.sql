-- Results for the next runs; of several for one schedule the last counts.
INSERT INTO last (schedule_id, result)
SELECT DISTINCT ON (schedule_id) schedule_id, result
FROM unnest(:schedule_id::text[], :result::text[]) WITH ORDINALITY AS new (schedule_id, result, place)
ORDER BY schedule_id, place DESC
ON CONFLICT (schedule_id) DO UPDATE SET result = excluded.result, failure = NULL
