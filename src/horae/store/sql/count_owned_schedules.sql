-- How many schedules of one owner pass a filter.
SELECT count(*) FROM schedule
WHERE owner = :owner
{include(filter)}
