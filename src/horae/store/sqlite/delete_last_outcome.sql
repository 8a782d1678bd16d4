-- What a removed schedule's next run would have been given.
DELETE FROM last_outcome WHERE schedule_id = :id
