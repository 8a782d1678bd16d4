-- How many grants of a user were not revoked, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM execution_grant WHERE user_id = :user_id AND revoked_at_ms IS NULL LIMIT :limit
) AS counted
