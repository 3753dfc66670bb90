-- name: find_chain
SELECT id FROM chain WHERE user = ? AND session = ? AND kind = ?

-- name: chain_owner
SELECT user, session, kind FROM chain WHERE id = ?

-- name: add_chain
INSERT INTO chain (user, session, kind) VALUES (?, ?, ?)

-- name: chains
SELECT id, user, session, kind FROM chain WHERE user = ? ORDER BY id

-- name: children
-- What follows a position: one page in most cases, more where transcripts forked there.
SELECT id, contents FROM page WHERE chain = ? AND parent = ? AND at = ? ORDER BY id

-- name: child_ids
-- The same inside the transaction that adds one more: has anybody been quicker?
SELECT id FROM page WHERE chain = ? AND parent = ? AND at = ? ORDER BY id

-- name: read_page
SELECT id, chain, parent, at, created, first, evidence, degraded, base, node, contents, nodes, places, flags
FROM page WHERE id = ?

-- name: page_exists
SELECT 1 FROM page WHERE id = ?

-- name: add_page
INSERT INTO page (chain, parent, at, created, first, evidence, degraded, base, node, contents, nodes, places, flags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: pages_of_chain
SELECT id FROM page WHERE chain = ? ORDER BY id

-- name: all_pages
SELECT id FROM page ORDER BY id

-- name: move_rows
-- The only thing that ever changes in a page: rows were erased.
UPDATE page SET places = ?, flags = ? WHERE id = ?

-- name: drop_page
-- A page that others follow stays: a child without its parent could not be restored.
DELETE FROM page WHERE id = ? AND NOT EXISTS (SELECT 1 FROM page AS child WHERE child.chain = page.chain AND child.parent = page.id)

-- name: walk
-- From a position to its chain's root: pages, and how many of their rows count.  No page has number 0: it stands for the root.
WITH RECURSIVE up (id, take) AS (
    VALUES (?, ?)
    UNION ALL
    SELECT page.parent, page.at FROM up JOIN page ON page.id = up.id
)
SELECT id, take FROM up WHERE id > 0

-- name: find_pack
SELECT id FROM pack WHERE digest = ?

-- name: add_pack
INSERT INTO pack (digest, codec, size, data) VALUES (?, ?, ?, ?)

-- name: read_pack
SELECT codec, size, data FROM pack WHERE id = ?

-- name: blank_pack
-- Without its digest nobody shares it any more: it is not what the digest said.
UPDATE pack SET digest = NULL, codec = ?, size = ?, data = ? WHERE id = ?

-- name: unshare_pack
UPDATE pack SET digest = NULL WHERE id = ?

-- name: drop_pack
DELETE FROM pack WHERE id = ?

-- name: mark_stale
INSERT OR IGNORE INTO stale (pack) VALUES (?)

-- name: stale_packs
SELECT pack FROM stale ORDER BY pack LIMIT ?

-- name: unmark_stale
DELETE FROM stale WHERE pack = ?

-- name: places_of_all
-- Every reference to every pack; only erasing and collecting ask for it.
SELECT places FROM page

-- name: erased_nodes
SELECT node FROM erased WHERE chain = ?

-- name: any_erased
SELECT 1 FROM erased WHERE chain = ? LIMIT 1

-- name: all_erased
SELECT chain.user, chain.session, chain.kind, erased.node FROM erased JOIN chain ON chain.id = erased.chain

-- name: add_erased
INSERT OR IGNORE INTO erased (chain, node) VALUES (?, ?)

-- name: find_checkpoint
SELECT number FROM checkpoint WHERE id = ?

-- name: add_checkpoint
INSERT INTO checkpoint (id, chain, count) VALUES (?, ?, ?)

-- name: next_attempt
SELECT coalesce(max(n), 0) + 1 FROM attempt WHERE checkpoint = ?

-- name: add_attempt
INSERT INTO attempt (
    checkpoint, n, page, at, digest, source_page, source_at, rows, evidence, new_rows, degraded, erased, host, trigger, time
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_attempt
DELETE FROM attempt WHERE id = ?

-- name: drop_bare_checkpoints
-- After an attempt was taken back.
DELETE FROM checkpoint WHERE NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.checkpoint = checkpoint.number)

-- name: prove_attempt
-- What a receipt says, as the second connection reads it.
SELECT checkpoint.id, checkpoint.chain, checkpoint.count, attempt.n, attempt.page, attempt.at, attempt.digest,
    attempt.source_page, attempt.source_at
FROM attempt JOIN checkpoint ON checkpoint.number = attempt.checkpoint WHERE attempt.id = ?

-- name: list_checkpoints
-- The most recent attempt first; NULL: any user, any session.
SELECT checkpoint.number, checkpoint.id, chain.user, chain.session, checkpoint.count
FROM checkpoint JOIN chain ON chain.id = checkpoint.chain
WHERE (?1 IS NULL OR chain.user = ?1) AND (?2 IS NULL OR chain.session = ?2)
ORDER BY (SELECT max(id) FROM attempt WHERE attempt.checkpoint = checkpoint.number) DESC LIMIT ?3

-- name: checkpoints_between
-- Ids that begin with some digits are a range.
SELECT checkpoint.number, checkpoint.id, chain.user, chain.session, checkpoint.count
FROM checkpoint JOIN chain ON chain.id = checkpoint.chain WHERE checkpoint.id BETWEEN ? AND ? ORDER BY checkpoint.id

-- name: attempts
SELECT n, page, at, digest, source_page, source_at, rows, evidence, new_rows, degraded, erased, host, trigger, time
FROM attempt WHERE checkpoint = ? ORDER BY n

-- name: all_attempts
SELECT checkpoint.id, attempt.page, attempt.at, attempt.digest, attempt.source_page, attempt.source_at
FROM attempt JOIN checkpoint ON checkpoint.number = attempt.checkpoint ORDER BY attempt.id

-- name: attempt_tips
SELECT page FROM attempt UNION SELECT source_page FROM attempt

-- name: page_links
-- Newest first: a page comes before those that it follows.
SELECT id, parent, created FROM page ORDER BY id DESC

-- name: all_marks
SELECT chain, node FROM erased

-- name: drop_marks
DELETE FROM erased

-- name: all_tips
SELECT attempt.id, attempt.checkpoint, checkpoint.chain, attempt.page, attempt.at
FROM attempt JOIN checkpoint ON checkpoint.number = attempt.checkpoint ORDER BY attempt.id

-- name: rekey_page
UPDATE page SET base = ?, node = ?, contents = ?, nodes = ? WHERE id = ?

-- name: rekey_attempt
UPDATE attempt SET digest = ? WHERE id = ?

-- name: rekey_checkpoint
UPDATE checkpoint SET id = ? WHERE number = ?

-- name: unshare_packs
UPDATE pack SET digest = NULL

-- name: set_contents
UPDATE page SET contents = ? WHERE id = ?
