-- Delete the last outcomes of deleted schedules.
DELETE FROM last_outcome WHERE schedule_key {among(keys, text)}
