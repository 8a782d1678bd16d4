-- How many schedules of one owner a filter lets through.
SELECT count(*) FROM schedule AS s
WHERE s.owner = :owner
-- include filter
