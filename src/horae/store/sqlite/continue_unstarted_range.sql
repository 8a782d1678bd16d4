-- A range that goes on where the last one of its schedule ended, for the same reason.
UPDATE unstarted_range SET last = :last, count = count + :count, decided_at = :decided_at
WHERE number = (SELECT max(number) FROM unstarted_range WHERE schedule_id = :schedule_id)
    AND generation = :generation AND last = :before AND status = :status AND reason = :reason
