-- The earliest time at which a schedule must be looked at.
SELECT min(next_at) FROM due WHERE next_at IS NOT NULL
