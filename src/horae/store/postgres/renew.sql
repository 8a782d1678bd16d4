-- A node that lives goes on living; one that was late is dead.
UPDATE node SET deadline = clock_timestamp() + make_interval(secs => :lease)
WHERE epoch = :epoch AND deadline > clock_timestamp()
RETURNING epoch
