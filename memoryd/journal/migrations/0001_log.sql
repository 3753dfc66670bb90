-- The event log: one row an accepted event, never deleted; a forgotten one keeps its row and loses its payload.
CREATE TABLE event (
    seq      INTEGER PRIMARY KEY,
    event_id BLOB NOT NULL,
    turn_key BLOB,
    at       INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    payload  BLOB
);
CREATE UNIQUE INDEX event_turn_key ON event (turn_key) WHERE turn_key IS NOT NULL;

-- One row: the epoch, renewed on restore and re-key, and how often the log was opened.
CREATE TABLE log (epoch TEXT NOT NULL, opened INTEGER NOT NULL);

CREATE TABLE remote_cursor (backend TEXT PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL);

CREATE TABLE dead_letter (
    backend TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (backend, seq)
);

-- Whether a session is private, under a keyed hash of (user, session): a private session writes nothing else.
CREATE TABLE session_privacy (session_key BLOB PRIMARY KEY, private INTEGER NOT NULL);

-- Forgets that are not finished: how far the payloads are cleared, and what the archive has to erase.
CREATE TABLE erasure (forget_seq INTEGER PRIMARY KEY, position INTEGER NOT NULL, plan BLOB NOT NULL);

-- Spool files whose events are in the log; a row goes when its file is gone.
CREATE TABLE ingested (name TEXT PRIMARY KEY);
