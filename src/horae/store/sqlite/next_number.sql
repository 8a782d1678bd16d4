-- A number that was never given out before.
UPDATE horae SET number = number + 1 RETURNING number
