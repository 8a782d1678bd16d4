-- Renew or revoke a grant.
UPDATE execution_grant SET {updated(execution_grant)}
{from_new}
WHERE execution_grant.id = new.id
