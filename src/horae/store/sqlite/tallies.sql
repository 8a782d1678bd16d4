-- How often what became of the starts of some schedules.
SELECT schedule_id, started, skipped, missed, dropped FROM due
WHERE schedule_id IN (SELECT value FROM json_each(:ids))
