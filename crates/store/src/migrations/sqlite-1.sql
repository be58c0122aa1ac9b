-- One row a session. `next` is the number of its next entry, and so how many it has.
CREATE TABLE cw_session (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    next INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    -- Of the newest prompt that was answered: its model, and its tokens as planned.
    model TEXT,
    tokens INTEGER,
    -- The number of the entry of the prompt whose items are in cw_prompt.
    sent INTEGER,
    updated TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX cw_session_updated ON cw_session (archived, updated, id);

-- One row an entry, never changed. `entry` is versioned JSON (docs/reference/events.md), `sum` its checksum with `n`.
-- `outline` says of a message what is needed where its text is not loaded.
CREATE TABLE cw_entry (
    session INTEGER NOT NULL REFERENCES cw_session (key) ON DELETE CASCADE,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    sum TEXT NOT NULL,
    outline TEXT,
    entry TEXT NOT NULL,
    PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;

-- The items of each session's newest prompt: a checksum, and id, hash and tokens of each as JSON.
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
