-- Delete the due times of deleted schedules.
DELETE FROM due WHERE schedule_key {among(keys, text)}
