/** The options of a session that is opened. */
import { homedir } from 'node:os'
import type { OpenOptions as NativeOptions } from '../index.js'
import { checkOpen } from './options.ts'
import type { OpenOptions } from './options.ts'
import { placed } from './place.ts'

/** The options with defaults for what the user left open. */
export function checkedOptions(options: OpenOptions): OpenOptions & NativeOptions {
  checkOpen(options)
  return { ...options, store: placed(options.store), home: options.home ?? homedir() }
}
