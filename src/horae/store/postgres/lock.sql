-- Lock schedules for a decision, in the order of their ids, so that no two nodes wait for each other.
SELECT schedule_id FROM due WHERE schedule_id {among(ids, text)} ORDER BY schedule_id FOR UPDATE
