-- How far the log has been applied.  It moves in the transaction of the rows, so that every event counts once.
CREATE TABLE cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL
);
INSERT INTO cursor (one, epoch, seq) VALUES (1, '', 0);

-- A user.  next: the n of the next line.  lines and tokens: totals of the lines that are there, for the ranking.
CREATE TABLE scope (
    id INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    next INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    tokens INTEGER NOT NULL
);

-- A thread of a user.  places: how many utterances it ever had.
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    name BLOB NOT NULL,
    started INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    places INTEGER NOT NULL,
    mark TEXT NOT NULL,
    UNIQUE (scope, name)
);

-- Who and where, besides the user: stored once for all lines that share it.  An empty name stands for none.
CREATE TABLE label (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    agent BLOB NOT NULL,
    workspace BLOB NOT NULL,
    platform BLOB NOT NULL,
    UNIQUE (scope, agent, workspace, platform)
);

-- What happened, in order of arrival.  seq is NULL while a new epoch of the log has not confirmed the event yet.
-- The texts are those of now (an edit changes them), as UTF-8 that may hold lone surrogates, like every BLOB here.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    seq INTEGER UNIQUE,
    event_id BLOB NOT NULL UNIQUE,
    kind INTEGER NOT NULL,           -- 1 turn, 2 memory write, 3 deletion, 4 edit
    scope INTEGER NOT NULL,
    session INTEGER,
    label INTEGER NOT NULL,
    at INTEGER NOT NULL,
    turn_id BLOB,
    user BLOB,                       -- or the value of a memory write
    assistant BLOB,
    user_line INTEGER,               -- the lines that index the texts
    assistant_line INTEGER
);

-- An utterance or a memory's value as the index knows it.  id = scope << 32 | n, the rowid in the full-text index.
CREATE TABLE line (
    id INTEGER PRIMARY KEY,
    event INTEGER NOT NULL,
    role INTEGER NOT NULL,           -- 0 user, 1 assistant, 2 memory
    session INTEGER,                 -- NULL: has no neighbours
    place INTEGER NOT NULL,          -- within the session, from 0
    tokens INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    label INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX line_place ON line (session, place) WHERE session IS NOT NULL;

-- Every change of a key; the value is its event's text.  lifetime: the first event since the key last began.
-- valid_until: when the next change came; NULL for the last one.
CREATE TABLE memory (
    event INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    key BLOB NOT NULL,
    deleted INTEGER NOT NULL,
    type BLOB,
    metadata TEXT,                   -- JSON
    lifetime INTEGER NOT NULL,
    created INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_until INTEGER
);
CREATE INDEX memory_key ON memory (scope, key);
CREATE INDEX memory_current ON memory (scope, event) WHERE valid_until IS NULL AND NOT deleted;
CREATE INDEX memory_lifetime ON memory (lifetime);

-- The texts that an edited turn had, the original (event = target) first.
CREATE TABLE edit (
    event INTEGER PRIMARY KEY,
    target INTEGER NOT NULL,
    user BLOB,
    assistant BLOB
);
CREATE INDEX edit_target ON edit (target);

CREATE VIRTUAL TABLE fts USING fts5 (
    body, content = '', contentless_delete = 1, detail = none,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
