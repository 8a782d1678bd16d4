-- A range of slots that did not run, unless the latest one has just been continued by it.
INSERT INTO passed (schedule_id, incarnation, first, last, count, status, reason, decided_at)
SELECT :schedule_id, :incarnation, :first, :last, :count, :status, :reason, :decided_at
WHERE NOT EXISTS (
    SELECT 1 FROM passed
    WHERE number = (SELECT max(number) FROM passed WHERE schedule_id = :schedule_id)
        AND incarnation = :incarnation AND last = :last AND first <= :first
)
