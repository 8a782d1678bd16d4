-- Remove this row of deleted schedules.
DELETE FROM due WHERE schedule_id {among(ids, text)}
