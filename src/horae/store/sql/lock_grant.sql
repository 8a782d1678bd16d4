-- A grant; no other transaction can change it until the end.
SELECT {columns(execution_grant)} FROM execution_grant WHERE id = :id {update_lock}
