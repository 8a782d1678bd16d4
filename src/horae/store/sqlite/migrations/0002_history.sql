-- What is kept beside runs: attempts that were followed by another, results for the next run, backfills, earlier specs.
CREATE TABLE attempt (
    run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    reason TEXT NOT NULL,
    failure TEXT,
    started_at INTEGER,
    ended_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, attempt)
) WITHOUT ROWID;

CREATE TABLE last (schedule_id TEXT PRIMARY KEY, result TEXT, failure TEXT) WITHOUT ROWID;

CREATE TABLE backfill (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    overlap TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    total INTEGER NOT NULL,
    made INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    input TEXT
);
CREATE INDEX backfill_open ON backfill (schedule_id) WHERE status = 'open';
CREATE INDEX backfill_latest ON backfill (schedule_id, number);

CREATE TABLE version (
    schedule_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    version INTEGER NOT NULL,
    spec TEXT NOT NULL,
    policies TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (schedule_id, generation, version)
) WITHOUT ROWID;
