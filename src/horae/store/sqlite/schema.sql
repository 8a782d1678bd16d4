-- The schema of this database, made from the migrations by tools/schema.py.

-- How many migrations the database has taken, and the source of numbers that are never given out twice.
CREATE TABLE horae (version INTEGER NOT NULL, number INTEGER NOT NULL DEFAULT 0);
INSERT INTO horae (version) VALUES (0);


-- Schedules as their owners made them. What a decision moves is in due. An id is unique within an owner: the key, which is made of
-- both, is what all other tables name a schedule by.
CREATE TABLE schedule (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    spec TEXT NOT NULL,
    action TEXT NOT NULL,
    policies TEXT NOT NULL,
    state TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    owner TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    tags TEXT NOT NULL,
    memo TEXT,
    search_attributes TEXT,
    request_id TEXT NOT NULL DEFAULT '',
    managed_by TEXT NOT NULL DEFAULT '',
    permitted_by TEXT NOT NULL DEFAULT '',
    execution_grant_id TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE UNIQUE INDEX schedule_owner ON schedule (owner, id);
CREATE INDEX schedule_by_id ON schedule (id, owner);
-- A state names what is not as usual. These find the few that may be meant; the state itself says whether they are.
CREATE INDEX schedule_paused ON schedule (id, owner) WHERE instr(state, '"paused"') > 0;
CREATE INDEX schedule_completed ON schedule (id, owner) WHERE instr(state, '"completed_at_ms"') > 0;
CREATE INDEX schedule_attention ON schedule (id, owner) WHERE instr(state, '"attention"') > 0;
CREATE INDEX schedule_managed_by ON schedule (managed_by, key) WHERE managed_by <> '';
CREATE INDEX schedule_grant ON schedule (execution_grant_id) WHERE execution_grant_id <> '';

-- One row for each schedule: its cursor, when it is due next, and how many runs it started.
-- Narrow, because every decision updates it. Where rows can be locked, its row is the lock of a decision.
CREATE TABLE due (
    schedule_key TEXT PRIMARY KEY,
    cursor_ms BIGINT NOT NULL,
    next_at_ms BIGINT,
    attempted_at_ms BIGINT,
    started BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX due_next ON due (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX due_never ON due (schedule_key) WHERE next_at_ms IS NULL;

-- How many slots of a schedule did not start, by reason.
CREATE TABLE unstarted_count (
    schedule_key TEXT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (schedule_key, reason)
) WITHOUT ROWID;

-- The latest generation of every schedule that there ever was.
CREATE TABLE generation (schedule_key TEXT PRIMARY KEY, schedule_id TEXT NOT NULL, latest BIGINT NOT NULL) WITHOUT ROWID;
CREATE INDEX generation_by_id ON generation (schedule_id) WHERE schedule_key <> schedule_id;

-- Specs and policies that an edit replaced, and when they were in force.
CREATE TABLE version (
    schedule_key TEXT NOT NULL,
    generation BIGINT NOT NULL,
    version BIGINT NOT NULL,
    spec TEXT NOT NULL,
    policies TEXT NOT NULL,
    since_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (schedule_key, generation, version)
) WITHOUT ROWID;

-- Shared calendars; an empty owner makes one public.
CREATE TABLE calendar (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;

-- Durable authorizations to run graphs for a user who is not there.
CREATE TABLE execution_grant (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    billing_account_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT
) WITHOUT ROWID;
CREATE INDEX execution_grant_user ON execution_grant (user_id, id);

-- What users' runs are charged to. Keys are sealed.
CREATE TABLE account (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL UNIQUE,
    virtual_key TEXT NOT NULL,
    credit BIGINT,
    spent BIGINT NOT NULL DEFAULT 0,
    updated_at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- What the executing side knows of requests: under one key, a graph is executed once.
CREATE TABLE execution (
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    run_id TEXT NOT NULL,
    holder TEXT NOT NULL,
    status TEXT NOT NULL,
    lease_until_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    stopping BOOLEAN NOT NULL DEFAULT FALSE,
    outcome TEXT,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;
CREATE INDEX execution_created ON execution (created_at_ms);

-- Patches of schedules that were carried out, by the ids that callers gave them, so that one that is sent again is not carried out again.
CREATE TABLE patch_request (
    schedule_key TEXT NOT NULL,
    generation BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (schedule_key, generation, request_id)
) WITHOUT ROWID;
CREATE INDEX patch_request_created ON patch_request (created_at_ms);

-- The states of graphs while they run, so that one that was killed resumes.
CREATE TABLE graph_state (
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    saved_at_ms BIGINT NOT NULL,
    PRIMARY KEY (run_id, key)
) WITHOUT ROWID;
CREATE INDEX graph_state_saved ON graph_state (saved_at_ms);

-- What runs of graphs used: charged once.
CREATE TABLE usage_record (
    run_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    unit TEXT NOT NULL,
    billing_account_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    recorded_at_ms BIGINT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY (run_id, attempt, unit)
) WITHOUT ROWID;
CREATE INDEX usage_record_recorded ON usage_record (recorded_at_ms);
CREATE INDEX usage_record_user ON usage_record (user_id, recorded_at_ms);
-- Versions of workflows, which never change; an empty owner makes one public.
CREATE TABLE workflow (
    owner TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    document TEXT NOT NULL,
    deployed_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workflow_id, owner, version)
) WITHOUT ROWID;
CREATE INDEX workflow_owner ON workflow (owner);

-- The id is a hash of the slot (schedule, generation, nominal time, origin): a unique id makes the slot unique.
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_key TEXT NOT NULL,
    generation BIGINT NOT NULL,
    nominal_ms BIGINT NOT NULL,
    origin TEXT NOT NULL,
    overlap TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_ms BIGINT NOT NULL,
    start_at_ms BIGINT NOT NULL,
    decided_at_ms BIGINT NOT NULL,
    owner TEXT NOT NULL DEFAULT '',
    action TEXT NOT NULL,
    action_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0,
    refusals BIGINT NOT NULL DEFAULT 0,
    crashes BIGINT NOT NULL DEFAULT 0,
    stop TEXT NOT NULL DEFAULT '',
    started_at_ms BIGINT,
    ended_at_ms BIGINT,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    result TEXT,
    failure TEXT,
    token_hash TEXT,
    report_by_ms BIGINT,
    input TEXT -- the last column: SQLite reads a row up to the column that it needs
);
CREATE INDEX run_latest ON run (schedule_key, number);
CREATE INDEX run_owned ON run (owner, number) WHERE owner <> '';
-- Not IN with a list: SQLite would make a temporary table of it for each row that is written.
CREATE INDEX run_open ON run (schedule_key, number)
    WHERE status = 'pending' OR status = 'retrying' OR status = 'starting' OR status = 'running';
CREATE INDEX run_unclaimed ON run (number) WHERE status = 'starting';
CREATE INDEX run_stopping ON run (epoch) WHERE status = 'running' AND stop <> '';
CREATE INDEX run_reports ON run (report_by_ms) WHERE status = 'running' AND report_by_ms IS NOT NULL;

-- Attempts that did not succeed. The latest attempt is in run too.
CREATE TABLE attempt (
    run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    reason TEXT NOT NULL,
    failure TEXT,
    started_at_ms BIGINT,
    ended_at_ms BIGINT NOT NULL,
    traceback TEXT,
    PRIMARY KEY (run_id, attempt)
) WITHOUT ROWID;

-- What attempts of a run saved, so that the next attempt need not repeat it.
CREATE TABLE checkpoint (
    run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    saved_at_ms BIGINT NOT NULL,
    PRIMARY KEY (run_id, key)
) WITHOUT ROWID;

-- What attempts logged: consecutive lines as JSON, by the number of the first one.
CREATE TABLE attempt_log (
    run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    number BIGINT NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (run_id, attempt, number)
) WITHOUT ROWID;

-- The last result and failure of a schedule, which its next run is given.
CREATE TABLE last_outcome (schedule_key TEXT PRIMARY KEY, result TEXT, failure TEXT) WITHOUT ROWID;

-- Consecutive slots that did not start, for one reason.
CREATE TABLE unstarted_range (
    number INTEGER PRIMARY KEY,
    schedule_key TEXT NOT NULL,
    generation BIGINT NOT NULL,
    start_ms BIGINT NOT NULL,
    end_ms BIGINT NOT NULL,
    count BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    decided_at_ms BIGINT NOT NULL,
    owner TEXT NOT NULL DEFAULT ''
);
CREATE INDEX unstarted_range_latest ON unstarted_range (schedule_key, number);
CREATE INDEX unstarted_range_decided ON unstarted_range (decided_at_ms, number);
CREATE INDEX unstarted_range_owned ON unstarted_range (owner, decided_at_ms, number) WHERE owner <> '';

CREATE TABLE backfill (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schedule_key TEXT NOT NULL,
    generation BIGINT NOT NULL,
    start_ms BIGINT NOT NULL,
    end_ms BIGINT NOT NULL,
    overlap TEXT NOT NULL,
    cursor_ms BIGINT NOT NULL,
    total BIGINT NOT NULL,
    made BIGINT NOT NULL,
    status TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    author TEXT NOT NULL,
    note TEXT NOT NULL,
    input TEXT
);
CREATE INDEX backfill_open ON backfill (schedule_key) WHERE status = 'open';
CREATE INDEX backfill_latest ON backfill (schedule_key, number);

-- Flows as they were deployed. What moves between their runs is in flow_lane.
CREATE TABLE flow (
    flow_id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,
    revision TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX flow_name ON flow (name, owner);

-- One row for each flow: when it is decided next, who works on it, why its handlers are due, what went wrong.
-- Where rows can be locked, its row is the lock of a decision.
CREATE TABLE flow_lane (
    flow_id BIGINT PRIMARY KEY,
    revision TEXT NOT NULL,
    next_at_ms BIGINT,
    runs BIGINT NOT NULL,
    run_id TEXT,
    task TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    marks TEXT,
    trouble TEXT,
    paused BOOLEAN NOT NULL,
    pauses TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX flow_lane_next ON flow_lane (next_at_ms) WHERE next_at_ms IS NOT NULL;
CREATE INDEX flow_lane_claimed ON flow_lane (epoch) WHERE run_id IS NOT NULL;
CREATE INDEX flow_lane_trouble ON flow_lane (flow_id) WHERE trouble IS NOT NULL;

-- What handlers keep from one run to the next.
CREATE TABLE flow_state (
    flow_id BIGINT NOT NULL,
    handler TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (flow_id, handler)
) WITHOUT ROWID;

-- Events of topics. A message id is unique in its topic.
CREATE TABLE flow_event (
    number INTEGER PRIMARY KEY,
    flow_id BIGINT NOT NULL,
    topic TEXT NOT NULL,
    message_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    run_id TEXT,
    caused BOOLEAN NOT NULL,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    UNIQUE (flow_id, topic, message_id)
);
CREATE INDEX flow_event_pending ON flow_event (flow_id, topic, number) WHERE status = 'pending';
CREATE INDEX flow_event_ended ON flow_event (flow_id, ended_at_ms) WHERE ended_at_ms IS NOT NULL;

-- What producers saw of the outside world, and which events each of it caused.
CREATE TABLE flow_input (
    number INTEGER PRIMARY KEY,
    flow_id BIGINT NOT NULL,
    source TEXT NOT NULL,
    type TEXT NOT NULL,
    input_id TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    skipped_at_ms BIGINT,
    UNIQUE (flow_id, source, type, input_id)
);
CREATE TABLE flow_cause (
    input_number BIGINT NOT NULL,
    event_number BIGINT NOT NULL,
    PRIMARY KEY (input_number, event_number)
) WITHOUT ROWID;
CREATE INDEX flow_cause_event ON flow_cause (event_number);

-- One row for each attempt of a handler. At most one of a flow is active.
CREATE TABLE flow_run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    flow_id BIGINT NOT NULL,
    handler TEXT NOT NULL,
    kind TEXT NOT NULL,
    phase TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    retry_of TEXT,
    prepared TEXT,
    mutation TEXT,
    error TEXT,
    failure_kind TEXT NOT NULL,
    title TEXT NOT NULL,
    revision TEXT NOT NULL,
    events BIGINT NOT NULL,
    published BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE INDEX flow_run_latest ON flow_run (flow_id, number);
CREATE UNIQUE INDEX flow_run_active ON flow_run (flow_id) WHERE status = 'active';

-- What the handlers of flows logged: as in attempt_log. A run has several attempts if its outcome was reconciled.
CREATE TABLE flow_log (
    run_id TEXT NOT NULL REFERENCES flow_run (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    number BIGINT NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (run_id, attempt, number)
) WITHOUT ROWID;

-- Topics in which events were published from outside of a run, for the next decision. Publishers lock nothing.
CREATE TABLE flow_signal (
    number INTEGER PRIMARY KEY,
    flow_id BIGINT NOT NULL,
    topic TEXT NOT NULL
);
CREATE INDEX flow_signal_flow ON flow_signal (flow_id);

-- The processes that drive this database. Each has a lease, or holds the lock of a file, while it is alive.
CREATE TABLE node (
    epoch BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    actions TEXT NOT NULL,
    tzdata TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    deadline_ms BIGINT
);
