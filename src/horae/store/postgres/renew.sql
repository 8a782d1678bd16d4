-- Renew the lease of a node, unless it has expired.
UPDATE node SET deadline = clock_timestamp() + make_interval(secs => :lease)
WHERE epoch = :epoch AND deadline > clock_timestamp()
RETURNING epoch
