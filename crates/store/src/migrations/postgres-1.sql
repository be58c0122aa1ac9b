-- One row a session. `next` is the number of its next entry, and so how many it has.
CREATE TABLE cw_session (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    next BIGINT NOT NULL DEFAULT 0,
    messages BIGINT NOT NULL DEFAULT 0,
    -- Of the newest prompt that was answered: its model, and its tokens as planned.
    model TEXT,
    tokens BIGINT,
    -- The number of the entry of the prompt whose items are in cw_prompt.
    sent BIGINT,
    updated TIMESTAMPTZ NOT NULL,
    archived BOOLEAN NOT NULL DEFAULT FALSE
) WITH (fillfactor = 50);
CREATE INDEX cw_session_updated ON cw_session (archived, updated, id);

-- One row an entry, never changed. `entry` is versioned JSON (docs/reference/events.md), `sum` its checksum with `n`.
-- `outline` says of a message what is needed where its text is not loaded. `writer` stands beside the first entry that is
-- written at once: by it a writer whose connection broke learns whether its commit was made.
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

-- The items of each session's newest prompt: a checksum, and id, hash and tokens of each as JSON.
CREATE TABLE cw_prompt (
    session BIGINT PRIMARY KEY REFERENCES cw_session (key) ON DELETE CASCADE,
    items TEXT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- PostgreSQL has no text with a NUL character: of an entry with one, only the JSON is shown.
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
