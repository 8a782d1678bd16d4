-- The last version of a schedule that was in force until before some moment.
SELECT schedule_id, incarnation, token, spec, policies, since, until, created_at FROM version
WHERE schedule_id = :id AND until < :at
ORDER BY incarnation DESC, token DESC
LIMIT 1
