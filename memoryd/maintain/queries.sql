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

-- name: identity
SELECT profile, instance FROM store_identity

-- name: count_bad_events
SELECT count(*) FROM event WHERE typeof(event_id) <> 'blob' OR length(event_id) <> 16 OR typeof(at) <> 'integer' OR at < 0

-- name: drop_bad_events
DELETE FROM event WHERE typeof(event_id) <> 'blob' OR length(event_id) <> 16 OR typeof(at) <> 'integer' OR at < 0

-- name: fill_gaps
WITH RECURSIVE place (seq) AS (
    SELECT 1 WHERE EXISTS (SELECT 1 FROM event)
    UNION ALL
    SELECT seq + 1 FROM place WHERE seq < (SELECT max(seq) FROM event)
)
INSERT INTO event (seq, event_id, at, kind, payload)
SELECT seq, randomblob(16), 0, 0, NULL FROM place WHERE seq NOT IN (SELECT seq FROM event)
