/** The start of Pi with the context manager, in the tests and in the demo: the one place that knows it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../extensions/settings.ts'

/**
 * The extension that is tried: this checkout's own, or the file or folder in CONTEXT_EXTENSION, so that the same tests
 * run against an installed package.
 */
export const EXTENSION: string = process.env['CONTEXT_EXTENSION'] ?? fileURLToPath(new URL('../extensions/index.ts', import.meta.url))

/** True if there is an extension to load. */
export function hasExtension(): boolean {
  return existsSync(EXTENSION)
}

/**
 * Returns the options with which `runPrint` and `startRpc` load the extension on a store: a file, or XTDB with a journal.
 * `settings` are over those of the home.
 */
export function withExtension(
  store: string | { url: string; journal: string },
  settings?: Partial<Settings>,
): {
  extension: string
  env: Record<string, string>
} {
  const env: Record<string, string> =
    typeof store === 'string' ? { CONTEXT_STORE_PATH: store } : { CONTEXT_STORE: 'xtdb', CONTEXT_XTDB_URL: store.url, CONTEXT_XTDB_JOURNAL: store.journal }
  if (settings !== undefined) env['CONTEXT_SETTINGS'] = JSON.stringify(settings)
  return { extension: EXTENSION, env }
}

/** A setting for short sessions: the first roll comes as soon as it pays, however little was spent. */
export const SOON = { debtCap: 'none' } as const
