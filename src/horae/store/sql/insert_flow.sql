-- Insert a flow that is deployed for the first time; one that another node has just inserted stays.
INSERT INTO flow ({inserted(flow)}) VALUES (:owner, :name, :definition, :revision, :created_at_ms, :updated_at_ms)
ON CONFLICT (owner, name) DO NOTHING
