-- What was counted of removed schedules.
DELETE FROM unstarted_count WHERE schedule_id = ANY (:id::text[])
