-- Remove a schedule; its runs stay.
DELETE FROM schedule WHERE id = $1
