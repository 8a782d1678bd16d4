-- Until when something must be heard of work that others do; one that was asked to stop never gets more time.
UPDATE run SET report_by = :report_by
WHERE id = :id AND attempt = :attempt AND status = 'running' AND report_by IS NOT NULL
    AND (stop = '' OR report_by > :report_by)
