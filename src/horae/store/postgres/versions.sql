-- What a schedule was before its edits, newest first; those before one.
SELECT schedule_id, incarnation, token, spec, policies, since, until, created_at FROM version
WHERE schedule_id = :id AND (incarnation, token) < (:incarnation::bigint, :token::bigint)
ORDER BY incarnation DESC, token DESC
LIMIT :limit
