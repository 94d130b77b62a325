/** The filesystem of this machine's files, as the store names it. */
import { native } from './native.ts'

/**
 * The filesystem namespace of this machine's own files, for the `filesystemId` of a mount or of a session on another machine that
 * shares these files: SHA-256 of the machine's ID in hexadecimal digits. Null on a machine without an ID, such as macOS: there
 * each store keeps a random one, which the `source` of a file shows.
 */
export function defaultFilesystemId(): string | null {
  return native.defaultFilesystemId()
}
