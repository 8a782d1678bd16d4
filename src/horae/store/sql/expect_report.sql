-- Set when reports on runs are due; a run that was asked to stop gets no more time.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET report_by_ms = new.report_by_ms
{from_new}
WHERE run.id = new.id AND run.attempt = new.attempt AND coalesce(run.status, '') = 'running'
    AND run.report_by_ms IS NOT NULL AND (run.stop = '' OR run.report_by_ms > new.report_by_ms)
