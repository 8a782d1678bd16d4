-- Runs that ended well and left nothing, if their schedules are still those that they ran for; only schedules that had
-- something have a row.
UPDATE last_outcome SET result = NULL, failure = NULL
FROM json_each(:ids)
WHERE last_outcome.schedule_id = json_each.value AND (last_outcome.result IS NOT NULL OR last_outcome.failure IS NOT NULL)
    AND (SELECT generation FROM schedule WHERE id = last_outcome.schedule_id)
        = json_extract(:generations, '$[' || json_each.key || ']')
