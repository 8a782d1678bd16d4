-- Ask running runs to stop; their nodes see it.
-- The `coalesce` makes the server find these by their ids, instead of scanning all open runs.
UPDATE run SET stop = new.stop, reason = new.reason
{from_new}
WHERE run.id = new.id AND coalesce(run.status, '') = 'running' AND run.stop <> 'terminate'
