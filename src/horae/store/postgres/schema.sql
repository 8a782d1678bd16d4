CREATE TABLE horae (version INTEGER NOT NULL, number BIGINT NOT NULL);
INSERT INTO horae (version, number) VALUES (1, 0);

CREATE TABLE schedule (
    id TEXT PRIMARY KEY,
    incarnation BIGINT NOT NULL,
    spec TEXT NOT NULL,
    action TEXT NOT NULL,
    policies TEXT NOT NULL,
    state TEXT NOT NULL,
    token BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Narrow, because every decision moves it: the place a schedule has come to, and when to look again.
-- Its row is also the lock under which a schedule is decided.
CREATE TABLE due (
    schedule_id TEXT PRIMARY KEY,
    cursor BIGINT NOT NULL,
    next_at BIGINT
) WITH (fillfactor = 70);
CREATE INDEX due_next ON due (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE incarnation (schedule_id TEXT PRIMARY KEY, latest BIGINT NOT NULL);

CREATE TABLE run (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_id TEXT NOT NULL,
    incarnation BIGINT NOT NULL,
    nominal BIGINT NOT NULL,
    origin TEXT NOT NULL,
    overlap TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_at BIGINT NOT NULL,
    start_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    input TEXT NOT NULL,
    result TEXT,
    failure TEXT,
    UNIQUE (schedule_id, incarnation, nominal, origin)
);
CREATE INDEX run_open ON run (schedule_id, number) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX run_claimed ON run (epoch) WHERE status IN ('starting', 'running');
CREATE INDEX run_latest ON run (schedule_id, number);

CREATE TABLE passed (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id TEXT NOT NULL,
    incarnation BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    count BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at BIGINT NOT NULL
);
CREATE INDEX passed_latest ON passed (schedule_id, number);

-- A node lives until its deadline, by the database's own clock.
CREATE TABLE node (epoch BIGINT PRIMARY KEY, deadline TIMESTAMPTZ NOT NULL);
