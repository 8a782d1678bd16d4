-- How many runs schedules started, and how many slots did not start, by reason.
SELECT due.schedule_id, started, reason, count
FROM due LEFT JOIN unstarted_count ON unstarted_count.schedule_id = due.schedule_id
WHERE due.schedule_id {among(ids, text)}
