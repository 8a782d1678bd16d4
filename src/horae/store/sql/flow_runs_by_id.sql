-- The runs of flows with the given ids; locked, so that none of them moves before the transaction ends.
SELECT {columns(flow_run)} FROM flow_run WHERE id {among(ids, text)} ORDER BY id
{update_lock}
