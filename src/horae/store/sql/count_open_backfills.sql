-- How many backfills of a schedule are open, counted up to a limit.
SELECT count(*) FROM (SELECT 1 FROM backfill WHERE schedule_key = :key AND status = 'open' LIMIT :limit) AS counted
