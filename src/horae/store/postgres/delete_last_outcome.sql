-- What removed schedules' next runs would have been given.
DELETE FROM last_outcome WHERE schedule_id = ANY (:id::text[])
