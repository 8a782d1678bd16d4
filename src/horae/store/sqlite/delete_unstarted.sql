-- What was counted of a removed schedule.
DELETE FROM unstarted WHERE schedule_id = :id
