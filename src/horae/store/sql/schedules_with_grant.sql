-- The schedules that name a grant.
SELECT key FROM schedule WHERE execution_grant_id = :grant_id AND execution_grant_id <> '' ORDER BY key LIMIT :limit
