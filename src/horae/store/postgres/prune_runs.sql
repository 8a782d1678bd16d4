-- The oldest ended runs of schedules that are past their retention, by age or by number; a few at a time.
DELETE FROM run
USING unnest(:schedule_id::text[], :before::bigint[], :count::bigint[], :most::bigint[])
    AS past (schedule_id, before, count, most)
CROSS JOIN LATERAL (
    SELECT t.number FROM run AS t
    WHERE t.schedule_id = past.schedule_id AND t.ended_at IS NOT NULL
        AND t.status NOT IN ('pending', 'retrying', 'starting', 'running')
        AND (t.ended_at < past.before OR t.number <= (
            SELECT r.number FROM run AS r
            WHERE r.schedule_id = past.schedule_id ORDER BY r.number DESC LIMIT 1 OFFSET past.count
        ))
    ORDER BY t.number LIMIT past.most
) AS old
WHERE run.number = old.number
