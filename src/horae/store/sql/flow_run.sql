-- One run of a flow.
SELECT {columns(flow_run)} FROM flow_run WHERE id = :id
