-- A range that goes on where the last one of its schedule ended, for the same reason.
UPDATE passed SET last = :last, count = count + :count, decided_at = :decided_at
WHERE number = (SELECT max(number) FROM passed WHERE schedule_id = :schedule_id)
    AND incarnation = :incarnation AND last = :before AND status = :status AND reason = :reason
