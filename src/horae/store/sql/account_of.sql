-- The account of a user.
SELECT {columns(account)} FROM account WHERE user_id = :user_id
