-- The sizes of what a schedule was before its edits, newest first; those before one.
SELECT octet_length(spec) + octet_length(policies)
FROM version
WHERE schedule_id = :id AND (generation, version) < (:generation::bigint, :version::bigint)
ORDER BY generation DESC, version DESC
LIMIT :limit
