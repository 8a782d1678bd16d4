-- The sizes of earlier versions of a schedule, newest first; those before one.
SELECT {size(version)} FROM version
WHERE schedule_id = :id AND (generation, version) < (CAST(:generation AS BIGINT), CAST(:version AS BIGINT))
ORDER BY generation DESC, version DESC
LIMIT :limit
