-- How many runs schedules started, and how many slots did not start, by reason.
SELECT due.schedule_key, started, reason, count
FROM due LEFT JOIN unstarted_count ON unstarted_count.schedule_key = due.schedule_key
WHERE due.schedule_key {among(keys, text)}
