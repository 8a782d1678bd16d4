-- The versions of a schedule before another, newest first.
SELECT {columns(version)} FROM version
WHERE schedule_key = :key AND (generation, version) < (CAST(:generation AS BIGINT), CAST(:version AS BIGINT))
ORDER BY generation DESC, version DESC
LIMIT :limit
