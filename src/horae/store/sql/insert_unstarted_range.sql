-- Insert ranges of slots that did not start, except those that have just extended the latest one.
INSERT INTO unstarted_range ({inserted(unstarted_range)})
SELECT {new(unstarted_range)}
{from_new}
WHERE NOT EXISTS (
    SELECT 1 FROM unstarted_range AS u
    WHERE u.number = (SELECT max(number) FROM unstarted_range AS r WHERE r.schedule_key = new.schedule_key)
        AND u.generation = new.generation AND u.end_ms = new.end_ms AND u.start_ms <= new.start_ms
)
