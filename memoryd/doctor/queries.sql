-- name: quick_check
PRAGMA quick_check(1)

-- name: page
SELECT seq, event_id, at, kind, payload FROM event WHERE seq > ? ORDER BY seq LIMIT ?

-- name: head
SELECT max(seq) FROM event

-- name: after
SELECT count(*), min(seq), max(at) FROM event WHERE at BETWEEN ? AND ?
