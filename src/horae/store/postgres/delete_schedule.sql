-- Remove schedules; their runs stay.
DELETE FROM schedule WHERE id = ANY (:id::text[])
