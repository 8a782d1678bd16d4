-- What was counted of removed schedules.
DELETE FROM unstarted WHERE schedule_id = ANY (:id::text[])
