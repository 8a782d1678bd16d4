-- Ranges of slots that did not run, unless the latest one has just been continued by them.
INSERT INTO passed (schedule_id, incarnation, first, last, count, status, reason, decided_at)
SELECT *
FROM unnest(:schedule_id::text[], :incarnation::bigint[], :first::bigint[], :last::bigint[], :count::bigint[],
    :status::text[], :reason::text[], :decided_at::bigint[]) AS new (schedule_id, incarnation, first, last, count,
    status, reason, decided_at)
WHERE NOT EXISTS (
    SELECT 1 FROM passed AS p
    WHERE p.number = (SELECT max(number) FROM passed AS q WHERE q.schedule_id = new.schedule_id)
        AND p.incarnation = new.incarnation AND p.last = new.last AND p.first <= new.first
)
