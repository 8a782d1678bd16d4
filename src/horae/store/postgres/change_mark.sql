-- Numbers that differ once runs, ranges, schedules, calendars or backfills have changed. Leases do not count.
SELECT (SELECT max(number) FROM run),
    (SELECT max(number) FROM unstarted_range),
    (SELECT max(decided_at_ms) FROM unstarted_range),
    (SELECT sum(hashtext(waiting.id || waiting.status || waiting.attempt)) FROM (
        SELECT id, status, attempt FROM run WHERE status IN ('pending', 'retrying', 'starting', 'running') LIMIT 1000) AS waiting),
    (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables
        WHERE schemaname = current_schema() AND relname IN ('schedule', 'calendar', 'backfill'))
