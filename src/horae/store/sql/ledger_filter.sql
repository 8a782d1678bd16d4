-- The conditions of a search, for a row of `run` or of `unstarted_range`. A subquery of one value is looked up, and never scans.
    status {among(statuses, text)}
        AND (CAST(:reason AS TEXT) IS NULL OR reason = :reason)
        AND decided_at_ms >= :since AND decided_at_ms < :until
        AND (CAST(:owner AS TEXT) IS NULL OR owner = :owner)
        AND (CAST(:tag AS TEXT) IS NULL OR (SELECT {has(tags, tag)} FROM schedule WHERE key = schedule_key))
        AND NOT (reason {among(without_reasons, text)})
