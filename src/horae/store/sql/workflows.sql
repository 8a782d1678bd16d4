-- A page of versions of workflows, by id, owner and version: those of one owner and of all owners, or everything.
SELECT workflow_id, owner, version, deployed_at_ms FROM workflow
WHERE (workflow_id, owner, version) > (:after_id, :after_owner, CAST(:after_version AS BIGINT))
    AND (CAST(:owner AS TEXT) IS NULL OR owner IN (:owner, ''))
ORDER BY workflow_id, owner, version
LIMIT :limit
