-- How many schedules pass a filter.
SELECT count(*) FROM schedule
WHERE TRUE
{include(filter)}
