-- Projection: where we are

-- name: cursor
SELECT epoch, seq FROM cursor;

-- name: set_cursor
UPDATE cursor SET epoch = ?, seq = ?;

-- name: touch_cursor
UPDATE cursor SET seq = seq;

-- name: unconfirm
UPDATE event SET seq = NULL;

-- name: confirm
UPDATE event SET seq = ? WHERE id = ? AND seq IS NULL;

-- name: event_known
SELECT id FROM event WHERE event_id = ?;

-- name: events_known
SELECT event_id FROM event WHERE event_id IN (SELECT unhex(value) FROM json_each(?));

-- name: last_event
SELECT coalesce(max(id), 0) FROM event;

-- Projection: names

-- name: scope_by_name
SELECT id, next, lines, tokens FROM scope WHERE name = ?;

-- name: scope_name
SELECT name FROM scope WHERE id = ?;

-- name: add_scope
INSERT INTO scope (name, next, lines, tokens) VALUES (?, 1, 0, 0) RETURNING id;

-- name: save_scope
UPDATE scope SET next = ?2, lines = ?3, tokens = ?4 WHERE id = ?1;

-- name: session_by_name
SELECT id, places, seen, mark FROM session WHERE scope = ? AND name = ?;

-- name: add_session
INSERT INTO session (scope, name, started, seen, places, mark) VALUES (?1, ?2, ?3, ?3, 0, '') RETURNING id;

-- name: save_session
UPDATE session SET places = ?2, seen = ?3, mark = ?4 WHERE id = ?1;

-- name: label_by_names
SELECT id FROM label WHERE scope = ? AND agent = ? AND workspace = ? AND platform = ?;

-- name: add_label
INSERT INTO label (scope, agent, workspace, platform) VALUES (?, ?, ?, ?) RETURNING id;

-- Projection: rows

-- name: add_event
INSERT INTO event (id, seq, event_id, kind, scope, session, label, at, turn_id, user, assistant, user_line, assistant_line)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_line
INSERT INTO line (id, event, role, session, place, tokens, flags, label, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: index_line
INSERT INTO fts (rowid, body) VALUES (?, ?);

-- name: unindex_line
DELETE FROM fts WHERE rowid = ?;

-- name: take_line
DELETE FROM line WHERE id = ? RETURNING tokens;

-- name: line_place
SELECT place FROM line WHERE id = ?;

-- Projection: memories

-- name: add_memory
INSERT INTO memory (event, scope, key, deleted, type, metadata, lifetime, created, valid_from, valid_until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL);

-- The newest change of a key in order of acceptance; what no epoch confirmed is oldest.
-- name: last_change
SELECT m.event, e.seq, m.deleted, m.lifetime, m.created FROM memory m JOIN event e ON e.id = m.event
WHERE m.scope = ? AND m.key = ? ORDER BY e.seq DESC, m.event DESC LIMIT 1;

-- name: close_value
UPDATE memory SET valid_until = ? WHERE event = ?;

-- name: changes_of_key
SELECT m.event, m.deleted, m.valid_from FROM memory m JOIN event e ON e.id = m.event
WHERE m.scope = ? AND m.key = ? ORDER BY e.seq, m.event;

-- name: link_change
UPDATE memory SET lifetime = ?, created = ?, valid_until = ? WHERE event = ?;

-- name: key_of_event
SELECT scope, key FROM memory WHERE event = ?;

-- name: drop_memory
DELETE FROM memory WHERE event = ?;

-- Projection: edits

-- name: turn_by_event_id
SELECT id, scope, session, label, at, user, assistant, user_line, assistant_line FROM event WHERE event_id = ? AND kind = 1;

-- name: turn_by_id
SELECT id, scope, session, label, at, user, assistant, user_line, assistant_line FROM event WHERE id = ? AND kind = 1;

-- name: keep_original
INSERT OR IGNORE INTO edit (event, target, user, assistant) VALUES (?1, ?1, ?2, ?3);

-- name: add_edit
INSERT OR REPLACE INTO edit (event, target, user, assistant) VALUES (?, ?, ?, ?);

-- name: texts_of_turn
SELECT d.user, d.assistant FROM edit d JOIN event e ON e.id = d.event WHERE d.target = ?1 ORDER BY d.event <> ?1, e.seq, d.event;

-- name: target_of_edit
SELECT target FROM edit WHERE event = ?1 AND target <> ?1;

-- name: drop_edit
DELETE FROM edit WHERE event = ?;

-- name: drop_edits_of_turn
DELETE FROM edit WHERE target = ?;

-- name: set_texts
UPDATE event SET user = ?2, assistant = ?3, user_line = ?4, assistant_line = ?5 WHERE id = ?1;

-- Projection: forgetting

-- name: events_by_seq
SELECT id, kind, scope, user_line, assistant_line FROM event WHERE seq IN (SELECT value FROM json_each(?));

-- name: event_by_row
SELECT id, kind, scope, user_line, assistant_line FROM event WHERE id = ?;

-- name: sessions_named
SELECT s.id, s.scope FROM session s JOIN scope c ON c.id = s.scope WHERE s.name = ?1 AND (?2 IS NULL OR c.name = ?2);

-- name: turns_of_session
SELECT id, kind, scope, user_line, assistant_line FROM event
WHERE id IN (SELECT event FROM line WHERE session = ?1 AND session IS NOT NULL) AND (seq IS NULL OR seq < ?2);

-- name: drop_session
DELETE FROM session WHERE id = ?;

-- name: drop_event
DELETE FROM event WHERE id = ?;

-- name: shrink_scope
UPDATE scope SET lines = lines - ?2, tokens = tokens - ?3 WHERE id = ?1;

-- name: scope_in_use
SELECT EXISTS (SELECT 1 FROM line WHERE id BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295)
    OR EXISTS (SELECT 1 FROM memory WHERE scope = ?1) OR EXISTS (SELECT 1 FROM session WHERE scope = ?1);

-- name: drop_labels
DELETE FROM label WHERE scope = ?;

-- name: drop_scope
DELETE FROM scope WHERE id = ?;

-- Recall

-- name: scope_totals
SELECT id, lines, tokens FROM scope WHERE name = ?;

-- name: labels_of_scope
SELECT id, agent, workspace, platform FROM label WHERE scope = ?;

-- What a term is in: the n of each line of a scope, as one text, which is much cheaper than a row for each.
-- name: postings
SELECT group_concat(rowid - ?2) FROM fts WHERE fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3;

-- The same for a large scope: the newest lines only.
-- name: newest_postings
SELECT group_concat(n) FROM (
    SELECT rowid - ?2 AS n FROM fts WHERE fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4
);

-- The same within limits of time, session and labels.
-- name: postings_within
SELECT group_concat(n) FROM (
    SELECT f.rowid - ?2 AS n FROM fts f CROSS JOIN line l ON l.id = f.rowid CROSS JOIN event e ON e.id = l.event
    WHERE f.fts MATCH ?1 AND f.rowid BETWEEN ?2 AND ?3 AND (?5 IS NULL OR l.at <= ?5) AND (?6 IS NULL OR e.session = ?6)
        AND (?7 IS NULL OR l.label IN (SELECT value FROM json_each(?7)))
    ORDER BY f.rowid DESC LIMIT ?4
);

-- name: session_id
SELECT id FROM session WHERE scope = ? AND name = ?;

-- Lines in the order of arrival around the given ones (n within the scope that begins at ?2): in a session that nothing interrupts,
-- their neighbours.  Some come twice.
-- name: lines_near
SELECT b.id - ?2, b.session, b.place, b.tokens, b.flags, b.at, b.label, b.role
FROM json_each(?1) j CROSS JOIN line b ON b.id BETWEEN ?2 + j.value - 2 AND ?2 + j.value + 2;

-- The lines up to two places away from the given ones in their sessions.
-- name: lines_beside
SELECT b.id - ?2, b.session, b.place, b.tokens, b.flags, b.at, b.label, b.role
FROM json_each(?1) j CROSS JOIN line a ON a.id = ?2 + j.value
CROSS JOIN line b ON b.session = a.session AND b.session IS NOT NULL AND b.place BETWEEN a.place - 2 AND a.place + 2;

-- name: events_of_lines
SELECT l.id, l.role, e.id, e.seq, e.event_id, e.session, e.label, e.at, e.turn_id, e.user, e.assistant
FROM json_each(?) j CROSS JOIN line l ON l.id = j.value CROSS JOIN event e ON e.id = l.event;

-- name: session_names
SELECT id, name FROM session WHERE id IN (SELECT value FROM json_each(?));

-- Values of keys, with the id of their lifetime's first event, and the event and line that hold the key now.
-- name: memories_of_events
SELECT m.event, m.key, first.event_id, m.valid_from, m.valid_until, now.event, held.user_line
FROM memory m JOIN event first ON first.id = m.lifetime
LEFT JOIN memory now ON now.lifetime = m.lifetime AND now.valid_until IS NULL AND NOT now.deleted
LEFT JOIN event held ON held.id = now.event
WHERE m.event IN (SELECT value FROM json_each(?));

-- Memories

-- name: current_memory
SELECT first.event_id, m.key, e.user, m.type, m.created, m.valid_from, m.metadata
FROM scope c JOIN memory m ON m.scope = c.id JOIN event e ON e.id = m.event JOIN event first ON first.id = m.lifetime
WHERE c.name = ? AND m.key = ? AND m.valid_until IS NULL AND NOT m.deleted;

-- name: current_memories
SELECT first.event_id, m.key, e.user, m.type, m.created, m.valid_from, m.metadata
FROM scope c CROSS JOIN memory m ON m.scope = c.id JOIN event e ON e.id = m.event JOIN event first ON first.id = m.lifetime
WHERE c.name = ? AND m.valid_until IS NULL AND NOT m.deleted ORDER BY m.event DESC LIMIT ? OFFSET ?;

-- name: current_keys
SELECT m.key FROM scope c CROSS JOIN memory m ON m.scope = c.id
WHERE c.name = ? AND m.valid_until IS NULL AND NOT m.deleted ORDER BY m.event DESC;

-- name: values_of_key
SELECT e.event_id, e.user, m.type, m.valid_from, m.valid_until, m.metadata
FROM scope c JOIN memory m ON m.scope = c.id JOIN event e ON e.id = m.event
WHERE c.name = ? AND m.key = ? AND NOT m.deleted ORDER BY e.seq DESC, m.event DESC;

-- One thing by its id

-- name: find_event
SELECT e.id, e.kind, e.user_line, e.assistant_line FROM event e JOIN scope c ON c.id = e.scope WHERE e.event_id = ? AND c.name = ?;

-- The line that now holds the key of the given event, in the same lifetime.
-- name: current_line
SELECT e.user_line FROM memory m JOIN memory c ON c.lifetime = m.lifetime JOIN event e ON e.id = c.event
WHERE m.event = ? AND c.valid_until IS NULL AND NOT c.deleted;

-- The whole store

-- name: counts
SELECT (SELECT count(*) FROM event WHERE kind = 1),
    (SELECT count(*) FROM memory WHERE valid_until IS NULL AND NOT deleted), (SELECT count(*) FROM session);

-- name: merge_index
INSERT INTO fts (fts, rank) VALUES ('merge', ?);

-- name: check_index
INSERT INTO fts (fts) VALUES ('integrity-check');

-- name: empty_index
INSERT INTO fts (fts) VALUES ('delete-all');

-- name: clear_event
DELETE FROM event;

-- name: clear_line
DELETE FROM line;

-- name: clear_memory
DELETE FROM memory;

-- name: clear_edit
DELETE FROM edit;

-- name: clear_session
DELETE FROM session;

-- name: clear_label
DELETE FROM label;

-- name: clear_scope
DELETE FROM scope;
