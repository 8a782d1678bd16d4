-- States that decisions changed.
UPDATE schedule SET state = new.state
FROM unnest(:schedule_id::text[], :state::text[]) AS new (schedule_id, state)
WHERE schedule.id = new.schedule_id
