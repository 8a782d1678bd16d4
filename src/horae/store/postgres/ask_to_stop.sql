-- Runs that go on are asked to stop; their nodes see it.
-- The `coalesce` makes the server look these up by their ids, and not go through all runs that are open.
UPDATE run SET stop = new.stop, reason = new.reason
FROM unnest(:id::text[], :stop::text[], :reason::text[]) AS new (id, stop, reason)
WHERE run.id = new.id AND coalesce(run.status, '') = 'running' AND run.stop <> 'terminate'
