-- Remove this row of deleted schedules.
DELETE FROM schedule WHERE id {among(ids, text)}
