-- A range of slots that did not run.
INSERT INTO passed (schedule_id, incarnation, first, last, count, status, reason, decided_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
