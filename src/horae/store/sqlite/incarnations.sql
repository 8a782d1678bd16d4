-- The latest number of each schedule that ever had one of some ids.
SELECT schedule_id, latest FROM incarnation WHERE schedule_id IN (SELECT value FROM json_each(:ids))
