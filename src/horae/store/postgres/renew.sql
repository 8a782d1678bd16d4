-- A node that lives goes on living; one that was late is dead.
UPDATE node SET deadline = clock_timestamp() + make_interval(secs => $2)
WHERE epoch = $1 AND deadline > clock_timestamp()
RETURNING epoch
