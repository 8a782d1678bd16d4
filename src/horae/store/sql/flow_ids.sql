-- A page of the ids of flows.
SELECT flow_id FROM flow WHERE flow_id > :after ORDER BY flow_id LIMIT :limit
