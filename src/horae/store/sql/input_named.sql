-- An input by what a producer registered it as.
SELECT {columns(flow_input)} FROM flow_input
WHERE flow_id = :flow_id AND source = :source AND type = :type AND input_id = :input_id
