-- What every store file says about itself.

-- name: create_identity
CREATE TABLE store_identity (
    kind     TEXT NOT NULL,     -- which store: log, memory, archive
    profile  BLOB NOT NULL,     -- the profile's real name, UTF-8 with surrogates passed
    instance TEXT NOT NULL      -- of the profile directory
) STRICT

-- name: insert_identity
INSERT INTO store_identity (kind, profile, instance) VALUES (?, ?, ?)

-- name: select_identity
SELECT kind, profile, instance FROM store_identity

-- name: count_objects
SELECT count(*) FROM sqlite_schema
