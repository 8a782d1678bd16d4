-- How many schedules a filter lets through.
SELECT count(*) FROM schedule AS s
WHERE TRUE
-- include filter
