-- The last version of a schedule that was in force until before some moment.
SELECT schedule_id, generation, version, spec, policies, since, until, created_at FROM version
WHERE schedule_id = :id AND until < :at
ORDER BY generation DESC, version DESC
LIMIT 1
