-- Delete lines of an attempt, because later ones took their place, under its claim.
DELETE FROM attempt_log
WHERE run_id = :run_id AND attempt = :attempt AND number {among(numbers, bigint)}
    AND EXISTS (
        SELECT 1 FROM run WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND coalesce(status, '') = 'running'
    )
