-- Insert a version of a workflow, unless it is there.
INSERT INTO workflow ({inserted(workflow)})
SELECT {new(workflow)}
{from_new}
WHERE TRUE
ON CONFLICT DO NOTHING
