-- Failures for the next runs, which get the last results too, if their schedules are still those that they ran for;
-- of several for one the last counts.
INSERT INTO last (schedule_id, failure)
SELECT DISTINCT ON (new.schedule_id) new.schedule_id, new.failure
FROM unnest(:schedule_id::text[], :incarnation::bigint[], :failure::text[]) WITH ORDINALITY AS new (schedule_id,
    incarnation, failure, place)
    JOIN schedule AS s ON s.id = new.schedule_id AND s.incarnation = new.incarnation
ORDER BY new.schedule_id, new.place DESC
ON CONFLICT (schedule_id) DO UPDATE SET failure = excluded.failure
