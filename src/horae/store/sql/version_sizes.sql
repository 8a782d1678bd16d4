-- The generations, versions and sizes of the versions of a schedule before another, newest first.
SELECT generation, version, {size(version)} FROM version
WHERE schedule_key = :key AND (generation, version) < (CAST(:generation AS BIGINT), CAST(:version AS BIGINT))
ORDER BY generation DESC, version DESC
LIMIT :limit
