-- Delete the oldest consumed and skipped events that are past the retention of their flows, by age or by number; a few at a time.
-- Events of an input that has an open event stay.
{delete_each(flow_event, number)} (
    SELECT e.number FROM flow_event AS e
    WHERE e.flow_id = new.flow_id AND e.ended_at_ms IS NOT NULL
        AND (e.ended_at_ms < new.before OR e.ended_at_ms < (
            SELECT ended_at_ms FROM flow_event WHERE flow_id = new.flow_id AND ended_at_ms IS NOT NULL
            ORDER BY ended_at_ms DESC LIMIT 1 OFFSET new.count
        ))
        AND NOT EXISTS (
            SELECT 1 FROM flow_cause AS mine
            JOIN flow_cause AS theirs ON theirs.input_number = mine.input_number
            JOIN flow_event AS others ON others.number = theirs.event_number
            WHERE mine.event_number = e.number AND others.status IN ('pending', 'reserved')
        )
    ORDER BY e.ended_at_ms LIMIT new.max_rows
) {deleted(flow_event, number)}
