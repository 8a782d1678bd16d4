-- What schedules were before edits that are past their retention, the oldest first; a few at a time.
DELETE FROM version
USING unnest(:schedule_id::text[], :before::bigint[], :most::bigint[]) AS past (schedule_id, before, most)
CROSS JOIN LATERAL (
    SELECT v.schedule_id, v.generation, v.version FROM version AS v
    WHERE v.schedule_id = past.schedule_id AND v.until < past.before
    ORDER BY v.generation, v.version LIMIT past.most
) AS old
WHERE version.schedule_id = old.schedule_id AND version.generation = old.generation AND version.version = old.version
