-- Who a chain belongs to.  kind 0: the rows of a session's transcripts; kind 1: the lines of their sources.
CREATE TABLE chain (
    id INTEGER PRIMARY KEY,
    user BLOB NOT NULL,
    session BLOB NOT NULL,
    kind INTEGER NOT NULL,
    UNIQUE (user, session, kind)
);

-- A run of rows that follows the first `at` rows of the page `parent` (0: the chain's root).  Pages of a chain are a tree, so that a
-- grown transcript shares all earlier pages and a changed one forks.  Digests never change; places and flags do when rows are erased.
CREATE TABLE page (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chain INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    at INTEGER NOT NULL,
    created INTEGER NOT NULL,    -- microseconds since the epoch
    first INTEGER NOT NULL,      -- rows before this page
    evidence INTEGER NOT NULL,   -- evidence rows before this page
    degraded INTEGER NOT NULL,   -- degraded rows before this page
    base BLOB NOT NULL,          -- digest of everything before this page
    node BLOB NOT NULL,          -- identity node before this page
    contents BLOB NOT NULL,      -- 32 bytes a row: digest of its raw bytes
    nodes BLOB NOT NULL,         -- 32 bytes a row: the identity node that it is, or hangs under
    places BLOB NOT NULL,        -- 16 bytes a row: pack, offset, length; zeros for an erased row
    flags BLOB NOT NULL          -- 1 byte a row
);
CREATE INDEX page_child ON page (chain, parent, at);

-- Raw rows, joined and compressed.  The digest is over the digests of its rows; NULL once some of its bytes were blanked.
CREATE TABLE pack (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest BLOB UNIQUE,
    codec INTEGER NOT NULL,      -- 0: as it is, 1: zlib
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);

CREATE TABLE checkpoint (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    chain INTEGER NOT NULL,
    count INTEGER NOT NULL
);
CREATE INDEX checkpoint_chain ON checkpoint (chain);

CREATE TABLE attempt (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    checkpoint INTEGER NOT NULL,
    n INTEGER NOT NULL,
    page INTEGER NOT NULL,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    source_page INTEGER NOT NULL,
    source_at INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    evidence INTEGER NOT NULL,
    new_rows INTEGER NOT NULL,
    degraded INTEGER NOT NULL,
    erased INTEGER NOT NULL,
    host BLOB NOT NULL,
    trigger BLOB NOT NULL,
    time INTEGER NOT NULL,
    UNIQUE (checkpoint, n)
);

-- Nodes that stay erased whenever the same transcript comes again.
CREATE TABLE erased (
    chain INTEGER NOT NULL,
    node BLOB NOT NULL,
    PRIMARY KEY (chain, node)
) WITHOUT ROWID;

-- Packs that hold bytes which something stopped reaching: to be blanked.
CREATE TABLE stale (pack INTEGER PRIMARY KEY);
