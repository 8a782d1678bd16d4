-- The sizes of what a schedule was before its edits, newest first; those before one.
SELECT octet_length(spec) + octet_length(policies)
FROM version
WHERE schedule_id = :id AND (incarnation, token) < (:incarnation::bigint, :token::bigint)
ORDER BY incarnation DESC, token DESC
LIMIT :limit
