-- The first version of a schedule that was in force until some moment or later.
SELECT schedule_id, generation, version, spec, policies, since, until, created_at FROM version
WHERE schedule_id = :id AND until >= :at
ORDER BY generation, version
LIMIT 1
