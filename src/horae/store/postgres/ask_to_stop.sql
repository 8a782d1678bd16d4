-- Runs that go on are asked to stop; their nodes see it.
UPDATE run SET stop = new.stop, reason = new.reason
FROM unnest(:id::text[], :stop::text[], :reason::text[]) AS new (id, stop, reason)
WHERE run.id = new.id AND run.status = 'running' AND run.stop <> 'terminate'
