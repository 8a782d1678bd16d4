-- A number that was never given before.
UPDATE horae SET number = number + 1 RETURNING number
