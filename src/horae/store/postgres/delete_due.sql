-- Nobody looks at a removed schedule.
DELETE FROM due WHERE schedule_id = $1
