-- What is kept beside runs: attempts that were followed by another, results for the next run, backfills, earlier specs.
CREATE TABLE attempt (
    run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    reason TEXT NOT NULL,
    failure TEXT,
    started_at BIGINT,
    ended_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, attempt)
);

CREATE TABLE last (schedule_id TEXT PRIMARY KEY, result TEXT, failure TEXT);

CREATE TABLE backfill (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    overlap TEXT NOT NULL,
    cursor BIGINT NOT NULL,
    total BIGINT NOT NULL,
    made BIGINT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    input TEXT
);
CREATE INDEX backfill_open ON backfill (schedule_id) WHERE status = 'open';
CREATE INDEX backfill_latest ON backfill (schedule_id, number);

CREATE TABLE version (
    schedule_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    version BIGINT NOT NULL,
    spec TEXT NOT NULL,
    policies TEXT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (schedule_id, generation, version)
);
