-- Texts in fewer bytes. A text has a form: as it is, compressed, or what differs from another text; its hash is always that
-- of the text. The long strings of a version's payload are texts of their own, and the rest of it is packed. Both forms
-- come by and by when the writer is idle, and can be told row by row, so that a process that ends on the way leaves a
-- store that is whole.

ALTER TABLE contents ADD COLUMN length INTEGER;   -- bytes of the text; NULL for one that was stored before
ALTER TABLE contents ADD COLUMN root INTEGER;     -- the text that this one is kept and indexed with; NULL until then
ALTER TABLE contents ADD COLUMN place INTEGER;    -- its place among those of its root, which has 0
CREATE INDEX contents_by_root ON contents (root) WHERE place > 0;

ALTER TABLE versions ADD COLUMN packed BLOB;      -- body, patch and nested; NULL where they stand in their columns
ALTER TABLE versions ADD COLUMN erased TEXT;      -- of a version that its owner erased: when and why, as JSON

DROP TRIGGER contents_keep;
CREATE TRIGGER contents_keep BEFORE UPDATE OF content, sha256 ON contents
    BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER contents_form BEFORE UPDATE OF text ON contents WHEN new.codec = old.codec
    BEGIN SELECT raise(ABORT, 'history is append-only'); END;
DROP TRIGGER versions_keep;
CREATE TRIGGER versions_keep BEFORE UPDATE OF seq, tx_id, object, valid_from, ahead, content, content_hash, source_hash,
    base, depth, text_hash ON versions BEGIN SELECT raise(ABORT, 'history is append-only'); END;
CREATE TRIGGER versions_form BEFORE UPDATE OF body, patch, nested, row_hash ON versions
    WHEN new.packed IS old.packed AND new.erased IS old.erased
    BEGIN SELECT raise(ABORT, 'history is append-only'); END;

-- The index holds no text, and of a text that is kept as a difference only the lines that are new in it. Its rows are
-- numbered by the text's root and place: root * 16 + place.
DROP TABLE contents_fts;
CREATE VIRTUAL TABLE contents_fts USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = "unicode61 tokenchars '_'"
);
DELETE FROM occurrences;
DROP TABLE indexed;
CREATE TABLE indexed (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    seq    INTEGER NOT NULL,      -- versions up to here are indexed
    packed INTEGER NOT NULL,      -- versions of older schemas up to here are packed
    old    INTEGER NOT NULL       -- the last version of older schemas
) STRICT;
INSERT INTO indexed SELECT 1, 0, 0, coalesce(max(seq), 0) FROM versions;

DROP VIEW history;
CREATE VIEW history AS
SELECT v.seq, o.object_id, o.type, o.path, v.tx_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.tx_time / 1000.0, 'unixepoch') AS tx_time,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.valid_from / 1000.0, 'unixepoch') AS valid_time,
       v.body, v.patch, v.packed IS NOT NULL AS is_packed, c.length, CASE c.codec WHEN 0 THEN c.text END AS content
FROM versions v JOIN objects o USING (object) JOIN txs t USING (tx_id) LEFT JOIN contents c USING (content);
