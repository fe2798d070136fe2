-- Purpose: the agent's spool, a SQLite file: what the hub has not acknowledged yet, and what must not be lost with it.
-- Grain: batch one row per sequence; fact, counter and state one row per name.
-- Reads: nothing
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (
    sequence INTEGER PRIMARY KEY,
    boot_id TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    window_end_second INTEGER NOT NULL,
    payload BLOB NOT NULL
);
-- Counts survive a restart, so that what was dropped is not forgotten with the process that dropped it.
CREATE TABLE IF NOT EXISTS counter (
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (name, reason)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
