-- A number that no node had before.
UPDATE horae SET epoch = epoch + 1 RETURNING epoch
