-- The backfills of some schedules that go on, in the order in which they were asked for.
SELECT id, schedule_id, generation, first, last, overlap, cursor, total, made, status, created_at, ended_at, author,
    note, input
FROM backfill
WHERE schedule_id = ANY (:ids::text[]) AND status = 'open'
ORDER BY number
