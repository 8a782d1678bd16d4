-- The states of the handlers of the given flows.
SELECT flow_id, handler, state FROM flow_state WHERE flow_id {among(ids, bigint)}
