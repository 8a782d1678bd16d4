-- A run that goes on is asked to stop; its node sees it.
UPDATE run SET stop = :stop, reason = :reason WHERE id = :id AND status = 'running' AND stop <> 'terminate'
