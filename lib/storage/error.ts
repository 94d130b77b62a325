/** The codes of {@link StorageError}. */
export type StorageErrorCode = 'INVALID_ARGUMENT' | 'IO' | 'STORE_FULL' | 'CLOSED'

/** The error that this entry point throws and rejects with. */
export class StorageError extends Error {
  /** Stable; the message may change. */
  readonly code: StorageErrorCode

  constructor(code: StorageErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StorageError'
    this.code = code
  }
}

/** Throws `INVALID_ARGUMENT` with `message` unless `holds`. */
export function expect(holds: boolean, message: string): asserts holds {
  if (!holds) throw new StorageError('INVALID_ARGUMENT', message)
}

/** The message of a rejection, whatever was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Node's code of a failed file operation, if it has one. */
export function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
