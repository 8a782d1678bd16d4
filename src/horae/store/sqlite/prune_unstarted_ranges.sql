-- The oldest ranges of a schedule that are past its retention, by age or by number; a few at a time.
DELETE FROM unstarted_range WHERE number IN (
    SELECT number FROM unstarted_range
    WHERE schedule_id = :schedule_id AND (decided_at < :before OR number <= (
        SELECT number FROM unstarted_range WHERE schedule_id = :schedule_id ORDER BY number DESC LIMIT 1 OFFSET :count
    ))
    ORDER BY number LIMIT :most
)
