-- A range of slots that did not run.
INSERT INTO passed (schedule_id, incarnation, first, last, count, status, reason, decided_at)
VALUES (:schedule_id, :incarnation, :first, :last, :count, :status, :reason, :decided_at)
