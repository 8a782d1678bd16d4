-- A range that goes on where the last one of its schedule ended, for the same reason.
UPDATE passed SET last = $1, count = count + $2, decided_at = $3
WHERE number = (SELECT max(number) FROM passed WHERE schedule_id = $4)
    AND incarnation = $5 AND last = $6 AND status = $7 AND reason = $8
RETURNING number
