-- A range of slots that did not run, unless the latest one has just been continued by it.
INSERT INTO unstarted_range (schedule_id, generation, first, last, count, status, reason, decided_at)
SELECT :schedule_id, :generation, :first, :last, :count, :status, :reason, :decided_at
WHERE NOT EXISTS (
    SELECT 1 FROM unstarted_range
    WHERE number = (SELECT max(number) FROM unstarted_range WHERE schedule_id = :schedule_id)
        AND generation = :generation AND last = :last AND first <= :first
)
