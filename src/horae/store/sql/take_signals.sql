-- Take the topics in which events were published from outside, of flows that are locked.
DELETE FROM flow_signal WHERE flow_id {among(ids, bigint)}
RETURNING flow_id, topic
