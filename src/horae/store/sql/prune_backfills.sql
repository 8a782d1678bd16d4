-- Delete the oldest ended backfills that are past the retention of their schedules; a few at a time.
{delete_each(backfill, number)} (
    SELECT number FROM backfill
    WHERE schedule_key = new.schedule_key AND status <> 'open' AND ended_at_ms < new.before
    ORDER BY number LIMIT new.max_rows
) {deleted(backfill, number)}
