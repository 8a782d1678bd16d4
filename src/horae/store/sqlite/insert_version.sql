-- What a schedule was before an edit.
INSERT INTO version (schedule_id, generation, version, spec, policies, since, until, created_at)
VALUES (:schedule_id, :generation, :version, :spec, :policies, :since, :until, :created_at)
