-- The sizes of the latest backfills of a schedule, newest first; those before one.
SELECT {size(backfill)} FROM backfill
WHERE schedule_id = :id
    AND (CAST(:before AS TEXT) IS NULL OR number < (SELECT number FROM backfill WHERE id = :before))
ORDER BY number DESC
LIMIT :limit
