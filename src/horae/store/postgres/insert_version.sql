-- What schedules were before an edit.
COPY version (schedule_id, generation, version, spec, policies, since, until, created_at) FROM STDIN
