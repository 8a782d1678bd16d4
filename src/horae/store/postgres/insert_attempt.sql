-- Attempts that are followed by another.
INSERT INTO attempt (run_id, attempt, epoch, reason, failure, started_at, ended_at)
SELECT *
FROM unnest(:run_id::text[], :attempt::bigint[], :epoch::bigint[], :reason::text[], :failure::text[],
    :started_at::bigint[], :ended_at::bigint[]) AS new (run_id, attempt, epoch, reason, failure, started_at, ended_at)
ON CONFLICT DO NOTHING
