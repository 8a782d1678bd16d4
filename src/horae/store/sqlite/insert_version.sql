-- What a schedule was before an edit.
INSERT INTO version (schedule_id, incarnation, token, spec, policies, since, until, created_at)
VALUES (:schedule_id, :incarnation, :token, :spec, :policies, :since, :until, :created_at)
