-- A state that a decision changed.
UPDATE schedule SET state = :state WHERE id = :schedule_id
