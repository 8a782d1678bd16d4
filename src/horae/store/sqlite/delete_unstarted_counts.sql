-- What was counted of a removed schedule.
DELETE FROM unstarted_count WHERE schedule_id = :id
