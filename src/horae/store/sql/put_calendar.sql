-- Insert or replace a shared calendar.
INSERT INTO calendar ({inserted(calendar)})
SELECT {new(calendar)}
{from_new}
WHERE TRUE
ON CONFLICT (owner, name) DO UPDATE SET {excluded(calendar)}
