-- What handlers of some flows kept.
SELECT flow_id, handler, state FROM flow_state WHERE flow_id {among(ids, bigint)}
