-- One row for each session. Entries are numbered from 0, so `next`, the number of the next entry, is also
-- their count.
CREATE TABLE cw_session (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    next BIGINT NOT NULL DEFAULT 0,
    messages BIGINT NOT NULL DEFAULT 0,
    -- The model and the planned tokens of the newest answered prompt.
    model TEXT,
    tokens BIGINT,
    -- The entry of the prompt whose items are in cw_prompt.
    sent BIGINT,
    updated TIMESTAMPTZ NOT NULL,
    archived BOOLEAN NOT NULL DEFAULT FALSE
) WITH (fillfactor = 50);
CREATE INDEX cw_session_updated ON cw_session (archived, updated, id);

-- One row for each entry. Rows never change. `entry` is versioned JSON (docs/reference/events.md), and `sum`
-- the checksum of `entry` and `n`. `outline` has the role, ids and size of a message, for logs loaded without
-- its text. `writer` is set in the first row of each write. A writer that lost its connection reads it to
-- find out if its write was committed.
CREATE TABLE cw_entry (
    session BIGINT NOT NULL REFERENCES cw_session (key) ON DELETE CASCADE,
    n BIGINT NOT NULL,
    kind TEXT NOT NULL,
    sum TEXT NOT NULL,
    outline TEXT,
    writer TEXT,
    entry TEXT NOT NULL,
    PRIMARY KEY (session, n)
);

-- The items of each session's newest prompt: a checksum, then the id, hash and tokens of each item as JSON.
CREATE TABLE cw_prompt (
    session BIGINT PRIMARY KEY REFERENCES cw_session (key) ON DELETE CASCADE,
    items TEXT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- PostgreSQL cannot store a NUL character in a text. If an entry has one, the view shows only its JSON.
CREATE VIEW cw_messages AS
SELECT
    cw_session.id AS session,
    cw_entry.n AS n,
    said.message ->> 'role' AS role,
    said.message ->> 'text' AS text,
    said.message ->> 'id' AS id,
    said.message ->> 'answers' AS answers,
    cw_entry.entry AS entry
FROM cw_entry
JOIN cw_session ON cw_session.key = cw_entry.session
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN strpos(cw_entry.entry, '\u0000') = 0 THEN cw_entry.entry::json -> 'entry' -> 'message'
    END AS message
) AS said
WHERE cw_entry.kind = 'message';
