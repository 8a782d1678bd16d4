-- Insert or change the account of a user; what it has spent stays.
INSERT INTO account ({inserted(account)})
{values} {new(account)} {end_values}
ON CONFLICT (user_id) DO UPDATE SET {excluded(account)}
