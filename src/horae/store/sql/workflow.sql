-- A version of a workflow, or the latest: the owner's, or else that of all owners.
SELECT {columns(workflow)} FROM workflow
WHERE workflow_id = :workflow_id AND owner IN (:owner, '')
    AND version = coalesce(
        CAST(:version AS BIGINT),
        (SELECT max(version) FROM workflow WHERE workflow_id = :workflow_id AND owner = :owner),
        (SELECT max(version) FROM workflow WHERE workflow_id = :workflow_id AND owner = '')
    )
ORDER BY owner DESC
LIMIT 1
