-- What there is to do, when to look at it, and what became of it.
CREATE TABLE horae (version INTEGER NOT NULL);
INSERT INTO horae (version) VALUES (0);
CREATE SEQUENCE horae_number;

CREATE TABLE schedule (
    id TEXT PRIMARY KEY,
    generation BIGINT NOT NULL,
    spec TEXT NOT NULL,
    action TEXT NOT NULL,
    policies TEXT NOT NULL,
    state TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    owner TEXT NOT NULL,
    tags TEXT NOT NULL
);

CREATE INDEX schedule_owner ON schedule (owner, id);

-- Narrow, because every decision moves it: the place a schedule has come to, when to look again, and the counts.
-- Its row is also the lock under which a schedule is decided.
CREATE TABLE due (
    schedule_id TEXT PRIMARY KEY,
    cursor BIGINT NOT NULL,
    next_at BIGINT,
    attempted_at BIGINT,
    started BIGINT NOT NULL DEFAULT 0,
    skipped BIGINT NOT NULL DEFAULT 0,
    missed BIGINT NOT NULL DEFAULT 0,
    dropped BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX due_next ON due (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX due_never ON due (schedule_id) WHERE next_at IS NULL;

CREATE TABLE generation (schedule_id TEXT PRIMARY KEY, latest BIGINT NOT NULL);

-- The id is a hash of the slot (schedule, generation, nominal time, origin): that it is unique makes the slot unique.
CREATE TABLE run (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    nominal BIGINT NOT NULL,
    origin TEXT NOT NULL,
    overlap TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_at BIGINT NOT NULL,
    start_at BIGINT NOT NULL,
    action TEXT NOT NULL,
    action_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0,
    refusals BIGINT NOT NULL DEFAULT 0,
    crashes BIGINT NOT NULL DEFAULT 0,
    stop TEXT NOT NULL DEFAULT '',
    started_at BIGINT,
    ended_at BIGINT,
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
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    count BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at BIGINT NOT NULL
);
CREATE INDEX unstarted_range_latest ON unstarted_range (schedule_id, number);

-- A node lives until its deadline, by the database's own clock.
CREATE TABLE node (
    epoch BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    actions TEXT NOT NULL,
    tzdata TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    deadline TIMESTAMPTZ NOT NULL
);
