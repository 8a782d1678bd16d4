-- How many shared calendars an owner has, counted up to a limit.
SELECT count(*) FROM (SELECT 1 FROM calendar WHERE owner = :owner LIMIT :limit) AS counted
