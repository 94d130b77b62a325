-- The hash of a version's text stands beside it, so that a version without its text is read from its own row: rows of
-- `contents` are as long as the texts. Versions of older schemas have it in `contents` only.

ALTER TABLE versions ADD COLUMN text_hash BLOB;
