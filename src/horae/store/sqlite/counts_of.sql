-- How many runs schedules started, and for each reason how many slots they did not.
SELECT d.schedule_id, d.started, u.reason, u.count
FROM due AS d LEFT JOIN unstarted_count AS u ON u.schedule_id = d.schedule_id
WHERE d.schedule_id IN (SELECT value FROM json_each(:ids))
