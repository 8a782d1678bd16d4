-- Failures for the next runs, which get the last results too; of several for one schedule the last counts.
INSERT INTO last (schedule_id, failure)
SELECT DISTINCT ON (schedule_id) schedule_id, failure
FROM unnest(:schedule_id::text[], :failure::text[]) WITH ORDINALITY AS new (schedule_id, failure, place)
ORDER BY schedule_id, place DESC
ON CONFLICT (schedule_id) DO UPDATE SET failure = excluded.failure
