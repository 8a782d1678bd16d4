-- States that decisions changed.
UPDATE schedule SET state = new.state
FROM unnest($1::text[], $2::text[]) AS new (schedule_id, state)
WHERE schedule.id = new.schedule_id
