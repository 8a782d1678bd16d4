-- Lock some schedules, in the order of their ids; what they are is read after that.
SELECT schedule_id FROM due
WHERE schedule_id = ANY (:ids::text[])
ORDER BY schedule_id
FOR UPDATE
