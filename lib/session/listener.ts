/** Listeners of users. */
import type { WatchEvent } from '../../index.js'
import { invalid, shown } from '../core/index.ts'

/** A listener whose errors are reported and can't end the process. */
export function guarded(listener: (event: WatchEvent) => void): (event: WatchEvent) => void {
  if (typeof listener !== 'function') throw invalid(`a listener must be a function, not ${shown(listener)}`)
  return (event) => {
    try {
      listener(event)
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error), { code: 'CONTEXT_LISTENER' })
    }
  }
}
