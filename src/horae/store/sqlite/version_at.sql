-- The first version of a schedule that was in force until some moment or later.
SELECT schedule_id, incarnation, token, spec, policies, since, until, created_at FROM version
WHERE schedule_id = :id AND until >= :at
ORDER BY incarnation, token
LIMIT 1
