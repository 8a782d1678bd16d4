-- Insert attempts that another one follows.
INSERT INTO attempt ({inserted(attempt)})
SELECT {new(attempt)}
{from_new}
WHERE TRUE
ON CONFLICT DO NOTHING
