-- The history: objects, transactions, contents and versions. Nothing in these tables is ever changed or removed.

CREATE TABLE objects (
    object        INTEGER PRIMARY KEY,           -- short number of the object, in the order of first appearance
    object_id     TEXT NOT NULL UNIQUE,          -- xt/id
    type          TEXT NOT NULL,                 -- file, toolcall, chat, system_prompt, session
    source        TEXT,                          -- source binding as JSON, NULL for an unsourced object
    filesystem_id TEXT GENERATED ALWAYS AS (source ->> '$.filesystemId') VIRTUAL,
    path          TEXT GENERATED ALWAYS AS (source ->> '$.path') VIRTUAL
) STRICT;

CREATE TABLE txs (
    tx_id   INTEGER PRIMARY KEY,
    tx_time INTEGER NOT NULL                     -- milliseconds since 1970
) STRICT;

CREATE TABLE contents (
    content INTEGER PRIMARY KEY,
    sha256  BLOB NOT NULL UNIQUE,                -- of the text; equal texts are stored once
    codec   INTEGER NOT NULL DEFAULT 0,          -- 0: plain text; others are reserved
    text    ANY NOT NULL
) STRICT;

CREATE TABLE versions (
    seq          INTEGER PRIMARY KEY,            -- place in the whole history
    tx_id        INTEGER NOT NULL REFERENCES txs,
    object       INTEGER NOT NULL REFERENCES objects,
    valid_from   INTEGER NOT NULL,               -- milliseconds since 1970
    ahead        INTEGER NOT NULL,               -- 1 if valid_from is later than the transaction's time
    body         TEXT NOT NULL,                  -- payload as JSON without content and hashes; of a patch: its scalar fields
    content      INTEGER REFERENCES contents,
    content_hash BLOB,                           -- NULL for a patch
    source_hash  BLOB,
    base         INTEGER,                        -- of a patch: the whole version that its chain begins with
    depth        INTEGER,                        -- of a patch: its place in the chain, from 1
    patch        TEXT,                           -- RFC 6902
    nested       TEXT,                           -- of a patch: lengths of the payload's lists, null for objects
    row_hash     BLOB NOT NULL                   -- over everything above, the envelope and the transaction's time
) STRICT;

CREATE INDEX versions_by_object ON versions (object, valid_from, tx_id);
CREATE INDEX versions_ahead ON versions (object, valid_from, tx_id) WHERE ahead = 1;

-- Values that belong to this place and not to the history.
CREATE TABLE local (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER objects_keep BEFORE UPDATE ON objects BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER objects_stay BEFORE DELETE ON objects BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER txs_keep BEFORE UPDATE ON txs BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER txs_stay BEFORE DELETE ON txs BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER contents_keep BEFORE UPDATE ON contents BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER contents_stay BEFORE DELETE ON contents BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER versions_keep BEFORE UPDATE ON versions BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER versions_stay BEFORE DELETE ON versions BEGIN SELECT raise(ABORT, 'history is append-only'); END;

-- For people: every version in readable form.
CREATE VIEW history AS
SELECT v.seq, o.object_id, o.type, o.path, v.tx_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.tx_time / 1000.0, 'unixepoch') AS tx_time,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.valid_from / 1000.0, 'unixepoch') AS valid_time,
       v.body, v.patch, c.text AS content
FROM versions v JOIN objects o USING (object) JOIN txs t USING (tx_id) LEFT JOIN contents c USING (content);
