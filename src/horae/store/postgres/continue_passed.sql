-- Ranges that go on where the last one of their schedule ended, for the same reason.
UPDATE passed SET last = new.last, count = passed.count + new.count, decided_at = new.decided_at
FROM unnest(:schedule_id::text[], :incarnation::bigint[], :last::bigint[], :count::bigint[], :status::text[],
    :reason::text[], :decided_at::bigint[], :before::bigint[]) AS new (schedule_id, incarnation, last, count, status,
    reason, decided_at, before)
WHERE passed.number = (SELECT max(number) FROM passed AS p WHERE p.schedule_id = new.schedule_id)
    AND passed.incarnation = new.incarnation AND passed.last = new.before AND passed.status = new.status
    AND passed.reason = new.reason
