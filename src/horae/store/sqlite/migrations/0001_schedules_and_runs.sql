-- What there is to do, when to look at it, and what became of it.
CREATE TABLE horae (version INTEGER NOT NULL, number INTEGER NOT NULL);
INSERT INTO horae (version, number) VALUES (0, 0);

CREATE TABLE schedule (
    id TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    spec TEXT NOT NULL,
    action TEXT NOT NULL,
    policies TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    owner TEXT NOT NULL,
    tags TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX schedule_owner ON schedule (owner, id);

-- Narrow, because every decision moves it: the place a schedule has come to, when to look again, and the counts.
CREATE TABLE due (
    schedule_id TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL,
    next_at INTEGER,
    attempted_at INTEGER,
    started INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    missed INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX due_next ON due (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX due_never ON due (schedule_id) WHERE next_at IS NULL;

CREATE TABLE generation (schedule_id TEXT PRIMARY KEY, latest INTEGER NOT NULL) WITHOUT ROWID;

-- The id is a hash of the slot (schedule, generation, nominal time, origin): that it is unique makes the slot unique.
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    nominal INTEGER NOT NULL,
    origin TEXT NOT NULL,
    overlap TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_at INTEGER NOT NULL,
    start_at INTEGER NOT NULL,
    action TEXT NOT NULL,
    action_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    stop TEXT NOT NULL DEFAULT '',
    started_at INTEGER,
    ended_at INTEGER,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    input TEXT,
    result TEXT,
    failure TEXT
);
CREATE INDEX run_latest ON run (schedule_id, number);
CREATE INDEX run_open ON run (schedule_id, number) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX run_unclaimed ON run (number) WHERE status = 'starting';
CREATE INDEX run_stopping ON run (epoch) WHERE status = 'running' AND stop <> '';

CREATE TABLE unstarted_range (
    number INTEGER PRIMARY KEY,
    schedule_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at INTEGER NOT NULL
);
CREATE INDEX unstarted_range_latest ON unstarted_range (schedule_id, number);

CREATE TABLE node (
    epoch INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    actions TEXT NOT NULL,
    tzdata TEXT NOT NULL,
    started_at INTEGER NOT NULL
);
