/** Chooses the sessions that stay unedited, so that the saving is measured and not computed. */
import { createHash } from 'node:crypto'

/**
 * True for a session on the side that is left plain. A hash of the host's name and the session's ID decides, so a session is on
 * the same side in every process, and whether its agent runs the extension or goes through the gateway.
 *
 * @param share from 0 (none) to 1 (all)
 */
export function isPlainSide(host: string, id: string, share: number): boolean {
  if (share <= 0) return false
  return createHash('sha256').update(`${host}:${id}`).digest().readUInt32BE(0) / 2 ** 32 < share
}
