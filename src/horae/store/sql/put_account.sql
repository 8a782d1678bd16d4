-- Insert or change the account of a user; what it has spent stays.
INSERT INTO account ({inserted(account)})
SELECT {new(account)}
{from_new}
WHERE TRUE
ON CONFLICT (user_id) DO UPDATE SET {excluded(account)}
