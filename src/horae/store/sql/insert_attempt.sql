-- Insert attempts that did not succeed.
INSERT INTO attempt ({inserted(attempt)})
{values} {new(attempt)} {end_values}
ON CONFLICT DO NOTHING
