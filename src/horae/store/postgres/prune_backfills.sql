-- The oldest backfills of schedules that ended before their retention; a few at a time.
DELETE FROM backfill
USING unnest(:schedule_id::text[], :before::bigint[], :most::bigint[]) AS past (schedule_id, before, most)
CROSS JOIN LATERAL (
    SELECT b.number FROM backfill AS b
    WHERE b.schedule_id = past.schedule_id AND b.status <> 'open' AND b.ended_at < past.before
    ORDER BY b.number LIMIT past.most
) AS old
WHERE backfill.number = old.number
