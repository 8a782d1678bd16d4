-- The oldest ended runs of a schedule that are past its retention, by age or by number; a few at a time.
DELETE FROM run WHERE number IN (
    SELECT number FROM run
    WHERE schedule_id = :schedule_id AND ended_at IS NOT NULL
        AND status NOT IN ('pending', 'retrying', 'starting', 'running')
        AND (ended_at < :before OR number <= (
            SELECT number FROM run WHERE schedule_id = :schedule_id ORDER BY number DESC LIMIT 1 OFFSET :count
        ))
    ORDER BY number LIMIT :most
)
