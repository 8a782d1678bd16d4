-- Ranges of slots that did not run, unless the latest one has just been continued by them.
INSERT INTO unstarted_range (schedule_id, generation, first, last, count, status, reason, decided_at)
SELECT *
FROM unnest(:schedule_id::text[], :generation::bigint[], :first::bigint[], :last::bigint[], :count::bigint[],
    :status::text[], :reason::text[], :decided_at::bigint[]) AS new (schedule_id, generation, first, last, count,
    status, reason, decided_at)
WHERE NOT EXISTS (
    SELECT 1 FROM unstarted_range AS p
    WHERE p.number = (SELECT max(number) FROM unstarted_range AS q WHERE q.schedule_id = new.schedule_id)
        AND p.generation = new.generation AND p.last = new.last AND p.first <= new.first
)
