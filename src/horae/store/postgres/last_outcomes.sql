-- What the latest runs of some schedules left to the next.
SELECT schedule_id, result, failure FROM last_outcome WHERE schedule_id = ANY (:ids::text[])
