-- The history: objects, transactions, contents and versions. No call of the engine changes or removes anything in these
-- tables; only the owner of the store does.

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

-- Texts: contents, and the long strings of payloads. A text has a form: as it is, compressed, or what differs from another
-- text. Its lasting form comes by and by when the writer is idle; its hash is always that of the text.
CREATE TABLE contents (
    content INTEGER PRIMARY KEY,
    sha256  BLOB NOT NULL UNIQUE,                -- of the text; equal texts are stored once
    codec   INTEGER NOT NULL,                    -- 0: plain, 1: compressed, 2: a difference from its root, 3: erased
    text    ANY NOT NULL,
    length  INTEGER NOT NULL,                    -- bytes of the text
    root    INTEGER,                             -- the text that this one is kept and indexed with; NULL until then
    place   INTEGER                              -- its place among those of its root, which has 0
) STRICT;

CREATE INDEX contents_by_root ON contents (root) WHERE place > 0;

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
    row_hash     BLOB NOT NULL,                  -- over everything above, the envelope and the transaction's time
    text_hash    BLOB,                           -- sha256 of the content, so that a version is read without its long text
    packed       BLOB,                           -- body, patch and nested, compressed; NULL where they stand in their columns
    erased       TEXT                            -- of a version that its owner erased: when and why, as JSON
) STRICT;

CREATE INDEX versions_by_object ON versions (object, valid_from, tx_id);
CREATE INDEX versions_ahead ON versions (object, valid_from, tx_id) WHERE ahead = 1;

-- Hashes of short texts that were erased, and of texts that are erased wherever they occur, so that they are not stored
-- again: one record for each call.
CREATE TABLE forgotten (
    record INTEGER PRIMARY KEY AUTOINCREMENT,
    hashes TEXT NOT NULL
) STRICT;

-- Values that belong to this place and not to the history.
CREATE TABLE local (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER objects_keep BEFORE UPDATE ON objects BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER objects_stay BEFORE DELETE ON objects BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER txs_keep BEFORE UPDATE ON txs BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER txs_stay BEFORE DELETE ON txs BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER contents_keep BEFORE UPDATE OF content, sha256 ON contents
    BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER contents_form BEFORE UPDATE OF text ON contents WHEN new.codec = old.codec
    BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER contents_stay BEFORE DELETE ON contents BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER versions_keep BEFORE UPDATE OF seq, tx_id, object, valid_from, ahead, content, content_hash, source_hash,
    base, depth, text_hash ON versions BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER versions_form BEFORE UPDATE OF body, patch, nested, row_hash ON versions
    WHEN new.packed IS old.packed AND new.erased IS old.erased
    BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER versions_stay BEFORE DELETE ON versions BEGIN SELECT raise(ABORT, 'history is append-only'); END;

-- The full-text index. It follows the history at a distance, so that no write waits for it. It holds no text, and of a text
-- that is kept as a difference only the lines that are new in it. Its rows are numbered: root * 16 + place.
CREATE VIRTUAL TABLE contents_fts USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = "unicode61 tokenchars '_'"
);

-- The newest version of each object with each content.
CREATE TABLE occurrences (
    content INTEGER NOT NULL,
    object  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (content, object)
) STRICT, WITHOUT ROWID;

-- How far the index has come.
CREATE TABLE indexed (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL                         -- versions up to here are indexed
) STRICT;
INSERT INTO indexed VALUES (1, 0);

-- For people: every version, in readable form as far as it is kept so.
CREATE VIEW history AS
SELECT v.seq, o.object_id, o.type, o.path, v.tx_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.tx_time / 1000.0, 'unixepoch') AS tx_time,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.valid_from / 1000.0, 'unixepoch') AS valid_time,
       v.body, v.patch, v.packed IS NOT NULL AS is_packed, c.length, CASE c.codec WHEN 0 THEN c.text END AS content
FROM versions v JOIN objects o USING (object) JOIN txs t USING (tx_id) LEFT JOIN contents c USING (content);
