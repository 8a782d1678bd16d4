-- Delete the oldest ended runs that are past the retention of their schedules, by age or by number; a few at a time.
{delete_each(run, number)} (
    SELECT number FROM run
    WHERE schedule_key = new.schedule_key AND ended_at_ms IS NOT NULL
        AND NOT {open(status)}
        AND (ended_at_ms < new.before OR number <= (
            SELECT number FROM run WHERE schedule_key = new.schedule_key ORDER BY number DESC LIMIT 1 OFFSET new.count
        ))
    ORDER BY number LIMIT new.max_rows
) {deleted(run, number)}
