-- The flows that are due and that this node can run, the longest overdue first; locked.
SELECT {columns(flow_lane)} FROM flow_lane
WHERE next_at_ms <= :now AND revision {among(revisions, text)}
ORDER BY next_at_ms
LIMIT :limit
{skip_locked}
