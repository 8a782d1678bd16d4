-- Insert attempts that did not succeed.
INSERT INTO attempt ({inserted(attempt)})
SELECT {new(attempt)}
{from_new}
WHERE TRUE
ON CONFLICT DO NOTHING
