-- Delete the oldest ranges that are past the retention of their schedules, by age or by number; a few at a time.
{delete_each(unstarted_range, number)} (
    SELECT number FROM unstarted_range
    WHERE schedule_key = new.schedule_key AND (decided_at_ms < new.before OR number <= (
            SELECT number FROM unstarted_range
            WHERE schedule_key = new.schedule_key ORDER BY number DESC LIMIT 1 OFFSET new.count
        ))
    ORDER BY number LIMIT new.max_rows
) {deleted(unstarted_range, number)}
