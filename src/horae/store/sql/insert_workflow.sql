-- Insert a version of a workflow, unless it is there.
INSERT INTO workflow ({inserted(workflow)})
{values} {new(workflow)} {end_values}
ON CONFLICT DO NOTHING
