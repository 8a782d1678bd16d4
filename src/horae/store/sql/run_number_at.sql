-- The number of the first run that was decided at a moment or later: a search by halves, because numbers and moments grow together.
WITH RECURSIVE halves (number, step) AS (
    SELECT CAST(0 AS BIGINT), CAST(1099511627776 AS BIGINT)
    UNION ALL
    SELECT CASE
            WHEN (SELECT decided_at_ms FROM run WHERE run.number >= halves.number + step ORDER BY run.number LIMIT 1) < :moment
                THEN halves.number + step
            ELSE halves.number
        END, step / 2
    FROM halves WHERE step > 0
)
SELECT max(number) + 1 FROM halves
