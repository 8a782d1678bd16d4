-- The sizes of what a schedule was before its edits, newest first; those before one.
SELECT length(CAST(spec AS BLOB)) + length(CAST(policies AS BLOB))
FROM version
WHERE schedule_id = :id AND (generation, version) < (:generation, :version)
ORDER BY generation DESC, version DESC
LIMIT :limit
