/** The five types of object. */
export type ObjectType = 'file' | 'toolcall' | 'chat' | 'system_prompt' | 'session'

/** A file: the filesystem namespace and the canonical absolute path inside it. */
export interface FilesystemSource {
  type: 'filesystem'
  filesystemId: string
  path: string
}

/**
 * One version of an object. `xt/id`, `type`, `source` and `identity_hash` never change; everything else is
 * covered by `content_hash`. Fields by type: docs/spec.md.
 */
export interface ObjectDocument {
  'xt/id': string
  type: ObjectType
  /** The source binding; null for an object that exists only in the store. Unknown source types are kept. */
  source: FilesystemSource | { type: string; [field: string]: unknown } | null
  /** SHA-256 of the canonical `{type, source}`; the ID of a sourced object. */
  identity_hash: string
  /** The text; null for files that are deleted, not text, unreadable, too large or only discovered. */
  content?: string | null
  /** SHA-256 of all payload fields except `source_hash` and itself. */
  content_hash: string
  /** SHA-256 of the source's raw bytes; null if they are not known. */
  source_hash?: string | null
  [field: string]: unknown
}

/** Every rejection is an `Error` with one of these as its `code`; see docs/errors.md. */
export type ErrorCode =
  | 'INVALID_ARGUMENT'
  | 'UNKNOWN_OBJECT'
  | 'NOT_CONTENT'
  | 'NULL_CONTENT'
  | 'NOT_ACTIVE'
  | 'CONFLICT'
  | 'STORE_UNAVAILABLE'
  | 'STORE_CORRUPT'
  | 'STORE_NEWER'
  | 'STORE_FULL'
  | 'IO'
  | 'CLOSED'
  | 'INTERNAL'

/** A file's content: text, or its bytes. */
export type Content = string | Uint8Array
