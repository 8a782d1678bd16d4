-- Results for the next runs, if their schedules are still those that they ran for; of several for one the last counts.
INSERT INTO last (schedule_id, result)
SELECT DISTINCT ON (new.schedule_id) new.schedule_id, new.result
FROM unnest(:schedule_id::text[], :incarnation::bigint[], :result::text[]) WITH ORDINALITY AS new (schedule_id,
    incarnation, result, place)
    JOIN schedule AS s ON s.id = new.schedule_id AND s.incarnation = new.incarnation
ORDER BY new.schedule_id, new.place DESC
ON CONFLICT (schedule_id) DO UPDATE SET result = excluded.result, failure = NULL
