-- Runs that ended well and left nothing; only schedules that had something have a row.
UPDATE last SET result = NULL, failure = NULL WHERE schedule_id IN (SELECT value FROM json_each(:ids))
