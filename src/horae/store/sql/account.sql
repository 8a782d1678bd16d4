-- An account.
SELECT {columns(account)} FROM account WHERE id = :id
