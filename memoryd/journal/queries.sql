-- name: append
INSERT INTO event (event_id, turn_key, at, kind, payload) VALUES (?, ?, ?, ?, ?)

-- name: append_once
INSERT INTO event (event_id, turn_key, at, kind, payload) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq

-- name: by_turn_key
SELECT seq, event_id FROM event WHERE turn_key = ?

-- name: head
SELECT max(seq) FROM event

-- name: page
SELECT seq, event_id, at, kind, payload FROM event WHERE seq > ? ORDER BY seq LIMIT ?

-- name: latest_ids
SELECT seq, event_id FROM event WHERE seq > ? ORDER BY seq DESC LIMIT ?

-- name: by_event_id
SELECT seq, event_id, at, kind, payload FROM event WHERE event_id = ?

-- name: event_id_of
SELECT event_id FROM event WHERE seq = ?

-- name: accepted_at
SELECT at FROM event WHERE seq > ? ORDER BY seq LIMIT 1

-- name: epoch
SELECT epoch FROM log

-- name: first_open
INSERT INTO log (epoch, opened) SELECT ?, 0 WHERE NOT EXISTS (SELECT 1 FROM log)

-- name: count_open
UPDATE log SET opened = opened + 1

-- name: prove
UPDATE log SET opened = opened

-- name: renew_epoch
UPDATE log SET epoch = ?

-- name: cursor
SELECT epoch, seq FROM remote_cursor WHERE backend = ?

-- name: advance
INSERT INTO remote_cursor (backend, epoch, seq) VALUES (?, ?, ?)
ON CONFLICT (backend) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq

-- name: bury
INSERT INTO dead_letter (backend, seq, reason, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: dead
SELECT backend, seq, reason, at FROM dead_letter ORDER BY backend, seq

-- name: dead_count
SELECT count(*) FROM dead_letter WHERE backend = ?

-- name: privacy
SELECT private FROM session_privacy WHERE session_key = ?

-- name: settle_privacy
INSERT INTO session_privacy (session_key, private) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: plan_erasure
INSERT INTO erasure (forget_seq, position, plan) VALUES (?, 0, ?)

-- name: erasures
SELECT forget_seq, position, plan FROM erasure ORDER BY forget_seq

-- name: without_payload
SELECT seq, event_id, turn_key, at, kind FROM event WHERE seq = ?

-- name: take_out
DELETE FROM event WHERE seq = ?

-- name: put_back
INSERT INTO event (seq, event_id, turn_key, at, kind, payload) VALUES (?, ?, ?, ?, ?, NULL)

-- name: erased_to
UPDATE erasure SET position = ? WHERE forget_seq = ?

-- name: finish_erasure
DELETE FROM erasure WHERE forget_seq = ?

-- name: is_ingested
SELECT 1 FROM ingested WHERE name = ?

-- name: ingested
INSERT INTO ingested (name) VALUES (?)

-- name: ingested_names
SELECT name FROM ingested

-- name: drop_ingested
DELETE FROM ingested WHERE name = ?

-- name: forgets
SELECT seq, event_id, at, kind, payload FROM event WHERE kind = ? ORDER BY seq

-- name: known_ids
CREATE TEMP TABLE known (event_id BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID

-- name: learn_ids
INSERT INTO temp.known (event_id, seq) SELECT event_id, seq FROM event WHERE seq > ? ON CONFLICT DO NOTHING

-- name: know_id
INSERT INTO temp.known (event_id, seq) VALUES (?, ?)

-- name: known_seq
SELECT seq FROM temp.known WHERE event_id = ?

-- name: drop_known_ids
DROP TABLE temp.known
