"""The tables of the SQLite store. A change to them raises `SCHEMA_VERSION` and says how to get there."""

SCHEMA_VERSION = 2

_RUNS = """
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,            -- order of creation, whatever the clock did
    run_id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    agent_run_id TEXT NOT NULL,
    state TEXT NOT NULL,
    language TEXT NOT NULL,
    manifest TEXT,
    limits TEXT NOT NULL,
    created_ms REAL NOT NULL,
    ended_ms REAL,
    owner_pid INTEGER,                  -- of the process that runs it; null while it waits
    owner_started TEXT,
    abort_asked INTEGER NOT NULL DEFAULT 0,
    expires_ms REAL,                    -- null until the first suspension; then it holds a slot
    reason TEXT,
    scope TEXT,
    carry TEXT,
    code TEXT,
    error TEXT,
    unsaid INTEGER NOT NULL DEFAULT 0   -- 1: it was lost with its process, and nobody was told yet
) STRICT"""

_SNAPSHOTS = """
CREATE TABLE snapshots (                -- beside the runs, so that a run's row stays small
    run_id TEXT NOT NULL PRIMARY KEY,
    build TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT"""

_SCOPES = """
CREATE TABLE scopes (                   -- one for all runs that were suspended with it
    digest TEXT NOT NULL PRIMARY KEY,
    data BLOB NOT NULL
) STRICT"""

_CALLS = """
CREATE TABLE calls (                    -- of suspended runs only
    run_id TEXT NOT NULL,
    call_id INTEGER NOT NULL,
    method TEXT NOT NULL,
    target TEXT NOT NULL,
    tool_id TEXT,
    input TEXT NOT NULL,
    state TEXT NOT NULL,
    owner_pid INTEGER,
    owner_started TEXT,
    due_ms REAL,
    position INTEGER,                   -- order of settlement; null while it is open
    ok INTEGER,
    answer TEXT,
    PRIMARY KEY (run_id, call_id)
) STRICT"""

_EVENTS = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    batch TEXT NOT NULL                 -- as `log.py` says
) STRICT"""

SCHEMA = (
    _RUNS,
    "CREATE INDEX runs_of_session ON runs (session)",
    "CREATE INDEX runs_of_agent_run ON runs (agent_run_id)",
    "CREATE INDEX runs_live ON runs (session, state, expires_ms) WHERE ended_ms IS NULL",
    "CREATE INDEX runs_of_scope ON runs (scope) WHERE ended_ms IS NULL",
    _SNAPSHOTS,
    _SCOPES,
    _CALLS,
    _EVENTS,
    "CREATE INDEX events_of_run ON events (run_id)",
)

# Made when a store is opened: the first stores have no such index, and any version can do without.
ENDED_INDEX = "CREATE INDEX IF NOT EXISTS runs_ended ON runs (ended_ms) WHERE ended_ms IS NOT NULL"
