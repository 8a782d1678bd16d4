-- Delete the counts of deleted schedules.
DELETE FROM unstarted_count WHERE schedule_key {among(keys, text)}
