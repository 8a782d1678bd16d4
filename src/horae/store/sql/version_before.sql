-- The last version of a schedule that was replaced before a moment.
SELECT {columns(version)} FROM version
WHERE schedule_key = :key AND until_ms < :at
ORDER BY generation DESC, version DESC
LIMIT 1
