-- Lock schedules for a decision, in the order of their keys, so that no two nodes wait for each other.
SELECT schedule_key FROM due WHERE schedule_key {among(keys, text)} ORDER BY schedule_key FOR UPDATE
