-- Work that somebody else does, and reports on: the hash of the token that the report must bring, and until when.
ALTER TABLE run ADD COLUMN token_hash TEXT;
ALTER TABLE run ADD COLUMN report_by INTEGER;
CREATE INDEX run_reports ON run (report_by) WHERE status = 'running' AND report_by IS NOT NULL;
