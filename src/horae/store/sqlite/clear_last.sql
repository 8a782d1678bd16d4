-- Runs that ended well and left nothing, if their schedules are still those that they ran for; only schedules that had
-- something have a row.
UPDATE last SET result = NULL, failure = NULL
FROM json_each(:ids)
WHERE last.schedule_id = json_each.value AND (last.result IS NOT NULL OR last.failure IS NOT NULL)
    AND (SELECT generation FROM schedule WHERE id = last.schedule_id)
        = json_extract(:generations, '$[' || json_each.key || ']')
