-- The oldest ranges of schedules that are past their retention, by age or by number; a few at a time.
DELETE FROM unstarted_range
USING unnest(:schedule_id::text[], :before::bigint[], :count::bigint[], :most::bigint[])
    AS past (schedule_id, before, count, most)
CROSS JOIN LATERAL (
    SELECT t.number FROM unstarted_range AS t
    WHERE t.schedule_id = past.schedule_id AND (t.decided_at < past.before OR t.number <= (
        SELECT p.number FROM unstarted_range AS p
        WHERE p.schedule_id = past.schedule_id ORDER BY p.number DESC LIMIT 1 OFFSET past.count
    ))
    ORDER BY t.number LIMIT past.most
) AS old
WHERE unstarted_range.number = old.number
