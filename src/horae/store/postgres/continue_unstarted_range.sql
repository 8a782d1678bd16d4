-- Ranges that go on where the last one of their schedule ended, for the same reason.
UPDATE unstarted_range SET last = new.last, count = unstarted_range.count + new.count, decided_at = new.decided_at
FROM unnest(:schedule_id::text[], :generation::bigint[], :last::bigint[], :count::bigint[], :status::text[],
    :reason::text[], :decided_at::bigint[], :before::bigint[]) AS new (schedule_id, generation, last, count, status,
    reason, decided_at, before)
WHERE unstarted_range.number = (SELECT max(number) FROM unstarted_range AS p WHERE p.schedule_id = new.schedule_id)
    AND unstarted_range.generation = new.generation AND unstarted_range.last = new.before AND unstarted_range.status = new.status
    AND unstarted_range.reason = new.reason
