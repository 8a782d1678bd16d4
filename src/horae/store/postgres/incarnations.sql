-- The latest number of each schedule that ever had one of some ids.
SELECT schedule_id, latest FROM incarnation WHERE schedule_id = ANY (:ids::text[])
