-- Nobody looks at removed schedules.
DELETE FROM due WHERE schedule_id = ANY (:id::text[])
