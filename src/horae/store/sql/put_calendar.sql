-- Insert or replace a shared calendar.
INSERT INTO calendar ({inserted(calendar)})
{values} {new(calendar)} {end_values}
ON CONFLICT (owner, name) DO UPDATE SET {excluded(calendar)}
