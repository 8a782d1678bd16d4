-- What a schedule was before its edits, newest first; those before one.
SELECT schedule_id, generation, version, spec, policies, since, until, created_at FROM version
WHERE schedule_id = :id AND (generation, version) < (:generation::bigint, :version::bigint)
ORDER BY generation DESC, version DESC
LIMIT :limit
