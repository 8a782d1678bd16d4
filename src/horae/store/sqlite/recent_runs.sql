-- The latest runs of each of some schedules, newest first.
SELECT {columns(run)} FROM run WHERE number IN (
    SELECT latest.number FROM {elements(keys, text)} CROSS JOIN run AS latest ON latest.number IN (
        SELECT number FROM run AS each WHERE each.schedule_key = json_each.value ORDER BY number DESC LIMIT :limit
    )
)
ORDER BY number DESC
