-- What removed schedules' next runs would have been given.
DELETE FROM last WHERE schedule_id = ANY (:id::text[])
