-- The full-text index. It follows the history at a distance, so that no write waits for it.

CREATE VIRTUAL TABLE contents_fts USING fts5 (
    text, content = 'contents', content_rowid = 'content', tokenize = "unicode61 tokenchars '_'"
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
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    content INTEGER NOT NULL,
    seq     INTEGER NOT NULL
) STRICT;
INSERT INTO indexed VALUES (1, 0, 0);
