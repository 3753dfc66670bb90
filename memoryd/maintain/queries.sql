-- What maintenance does to stores that nobody else has open.

-- name: log_place
SELECT epoch, (SELECT coalesce(max(seq), 0) FROM event) FROM log

-- name: renew_epoch
UPDATE log SET epoch = ?

-- name: set_identity
UPDATE store_identity SET profile = ?, instance = ?

-- name: turn_keys
SELECT seq, event_id, at, kind, payload, turn_key FROM event WHERE seq > ? AND turn_key IS NOT NULL ORDER BY seq LIMIT ?

-- name: set_turn_key
UPDATE event SET turn_key = ? WHERE seq = ?

-- name: session_keys
SELECT session_key FROM session_privacy

-- name: set_session_key
UPDATE session_privacy SET session_key = ? WHERE session_key = ?

-- name: count_rows
SELECT (SELECT count(*) FROM event)
