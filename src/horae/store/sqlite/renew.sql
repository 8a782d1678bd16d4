-- Renew the lease of a node, unless it has expired.
UPDATE node SET deadline_ms = {time_ms} + :lease_ms WHERE epoch = :epoch AND deadline_ms > {time_ms} RETURNING epoch
