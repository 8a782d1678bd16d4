-- What schedules were before an edit.
COPY version (schedule_id, incarnation, token, spec, policies, since, until, created_at) FROM STDIN
