-- How many versions of workflows an owner has, counted up to a limit.
SELECT count(*) FROM (SELECT 1 FROM workflow WHERE owner = :owner LIMIT :limit) AS counted
