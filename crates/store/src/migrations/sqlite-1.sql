-- One row for each session. Entries are numbered from 0, so `next`, the number of the next entry, is also
-- their count.
CREATE TABLE cw_session (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    next INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    -- The model and the planned tokens of the newest answered prompt.
    model TEXT,
    tokens INTEGER,
    -- The entry of the prompt whose items are in cw_prompt.
    sent INTEGER,
    updated TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX cw_session_updated ON cw_session (archived, updated, id);

-- One row for each entry. Rows never change. `entry` is versioned JSON (docs/reference/events.md), and `sum`
-- the checksum of `entry` and `n`. `outline` has the role, ids and size of a message, for logs loaded without
-- its text.
CREATE TABLE cw_entry (
    session INTEGER NOT NULL REFERENCES cw_session (key) ON DELETE CASCADE,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    sum TEXT NOT NULL,
    outline TEXT,
    entry TEXT NOT NULL,
    PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;

-- The items of each session's newest prompt: a checksum, then the id, hash and tokens of each item as JSON.
CREATE TABLE cw_prompt (
    session INTEGER PRIMARY KEY REFERENCES cw_session (key) ON DELETE CASCADE,
    items TEXT NOT NULL
) STRICT;

CREATE VIEW cw_messages AS
SELECT
    cw_session.id AS session,
    cw_entry.n AS n,
    json_extract(cw_entry.entry, '$.entry.message.role') AS role,
    json_extract(cw_entry.entry, '$.entry.message.text') AS text,
    json_extract(cw_entry.entry, '$.entry.message.id') AS id,
    json_extract(cw_entry.entry, '$.entry.message.answers') AS answers,
    cw_entry.entry AS entry
FROM cw_entry
JOIN cw_session ON cw_session.key = cw_entry.session
WHERE cw_entry.kind = 'message';
