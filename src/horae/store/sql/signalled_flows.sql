-- The flows in which events were published from outside, and that this node can run; locked.
SELECT {columns(flow_lane)} FROM flow_lane
WHERE flow_id IN (SELECT flow_id FROM flow_signal ORDER BY number LIMIT :limit) AND revision {among(revisions, text)}
{skip_locked}
