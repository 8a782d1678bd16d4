-- A user's usage recorded in a span, summed by account and by steps of time, the latest first.
SELECT
    billing_account_id, recorded_at_ms / CAST(:step_ms AS BIGINT) * CAST(:step_ms AS BIGINT) AS step, count(*), count(DISTINCT run_id),
    CAST(sum(input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT), CAST(sum(cost) AS BIGINT)
FROM usage_record
WHERE user_id = :user_id AND recorded_at_ms >= :since_ms AND recorded_at_ms < :until_ms
GROUP BY billing_account_id, step
ORDER BY step DESC, billing_account_id
LIMIT :limit
