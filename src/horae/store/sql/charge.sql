-- Add to what an account has spent.
UPDATE account SET spent = spent + :cost WHERE id = :id RETURNING id
