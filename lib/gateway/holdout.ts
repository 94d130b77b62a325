/** Sessions that go out unedited, so that the saving is measured and not computed. */
import { createHash } from 'node:crypto'

/** Chooses sessions by a hash of their names: the same session is always on the same side. */
export class Holdout {
  readonly #share: number

  /** `share`: from 0 (none) to 1 (all). */
  constructor(share: number) {
    this.#share = share
  }

  /** Returns whether a session is held out, with all its subagents. A conversation without a name is never. */
  has(session: string | undefined): boolean {
    if (session === undefined || this.#share <= 0) return false
    const [host, id] = session.split(':')
    const first = createHash('sha256').update(`${host}:${id}`).digest().readUInt32BE(0)
    return first / 2 ** 32 < this.#share
  }
}
