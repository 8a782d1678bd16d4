-- Replace the definition of a deployed flow.
UPDATE flow SET definition = :definition, revision = :revision, updated_at_ms = :updated_at_ms WHERE flow_id = :flow_id
