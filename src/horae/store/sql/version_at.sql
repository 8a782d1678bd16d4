-- The version of a schedule that was in force at a moment, if a later one replaced it.
SELECT {columns(version)} FROM version
WHERE schedule_key = :key AND until_ms >= :at
ORDER BY generation, version
LIMIT 1
