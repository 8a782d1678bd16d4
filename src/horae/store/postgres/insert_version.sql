-- What schedules were before an edit.
INSERT INTO version (schedule_id, incarnation, token, spec, policies, since, until)
SELECT *
FROM unnest(:schedule_id::text[], :incarnation::bigint[], :token::bigint[], :spec::text[], :policies::text[],
    :since::bigint[], :until::bigint[]) AS new (schedule_id, incarnation, token, spec, policies, since, until)
