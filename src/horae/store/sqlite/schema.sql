CREATE TABLE horae (version INTEGER NOT NULL, number INTEGER NOT NULL);
INSERT INTO horae (version, number) VALUES (1, 0);

CREATE TABLE schedule (
    id TEXT PRIMARY KEY,
    incarnation INTEGER NOT NULL,
    spec TEXT NOT NULL,
    action TEXT NOT NULL,
    policies TEXT NOT NULL,
    state TEXT NOT NULL,
    token INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Narrow, because every decision moves it: the place a schedule has come to, and when to look again.
CREATE TABLE due (
    schedule_id TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL,
    next_at INTEGER
) WITHOUT ROWID;
CREATE INDEX due_next ON due (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE incarnation (schedule_id TEXT PRIMARY KEY, latest INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    nominal INTEGER NOT NULL,
    origin TEXT NOT NULL,
    overlap TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_at INTEGER NOT NULL,
    start_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    input TEXT NOT NULL,
    result TEXT,
    failure TEXT,
    UNIQUE (schedule_id, incarnation, nominal, origin)
);
CREATE INDEX run_open ON run (schedule_id, number) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX run_claimed ON run (epoch) WHERE status IN ('starting', 'running');
CREATE INDEX run_latest ON run (schedule_id, number);

CREATE TABLE passed (
    number INTEGER PRIMARY KEY,
    schedule_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at INTEGER NOT NULL
);
CREATE INDEX passed_latest ON passed (schedule_id, number);
