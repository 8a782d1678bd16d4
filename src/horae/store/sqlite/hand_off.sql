-- Somebody else goes on with an attempt: nobody holds the run, and something must be heard of it in time.
UPDATE run SET epoch = 0, started_at = :started_at, report_by = :report_by
WHERE id = :run_id AND epoch = :epoch AND attempt = :attempt AND status = 'running'
