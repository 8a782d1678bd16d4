-- Insert new runs of flows. A flow has one active run: another is an error.
INSERT INTO flow_run ({inserted(flow_run)})
{values} {new(flow_run)} {end_values}
