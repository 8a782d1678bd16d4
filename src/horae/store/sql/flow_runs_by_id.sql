-- Some runs of flows; locked, so that none of them moves before the end.
SELECT {columns(flow_run)} FROM flow_run WHERE id {among(ids, text)} ORDER BY id
{update_lock}
