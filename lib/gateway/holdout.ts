/** Sessions that go out unedited, so that the saving is measured and not computed. */
import { isPlainSide } from '../core/index.ts'

/** Chooses sessions by a hash of their names: the same session is always on the same side. */
export class Holdout {
  readonly #share: number

  /** `share`: from 0 (none) to 1 (all). */
  constructor(share: number) {
    this.#share = share
  }

  /** True if a session is held out, with all its subagents. A conversation without a name is only where all of them are. */
  has(session: string | undefined): boolean {
    if (session === undefined) return this.#share >= 1
    const [host = '', id = ''] = session.split(':')
    return isPlainSide(host, id, this.#share)
  }
}
