/** Sessions on real stores and files for the tests of the class, and what they are compared with. */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ContextManager } from '../../lib/index.ts'
import type { ErrorCode, ModelCall, OpenOptions, StoreOptions } from '../../lib/index.ts'
import { onCleanUp } from '../../rig/cleanup.ts'

/** The namespace of the files in tests, so that IDs do not depend on the machine. */
export const FILESYSTEM = 'test-filesystem'

/** Texts that are no IDs of filesystems: too short, too long, in characters or in bytes, with control characters, or with blanks at their ends. */
export const NO_FILESYSTEM_IDS = [
  '',
  ' ',
  '\u3000',
  ' f',
  'f ',
  'f\n',
  'a\tb',
  'a\0b',
  'a\u007fb',
  'a\u0085b',
  'ü'.repeat(257),
  'x'.repeat(513),
  'x'.repeat(5000),
]

/** The agent's folder, with no symbolic link in its path, removed after the test. */
export function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'context-')))
  // A tracker's last marker may go at this moment; the synchronous one ends the process of Node 22 then.
  onCleanUp(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  return path
}

/** A store in its own folder. */
export function sqlite(): StoreOptions & { kind: 'sqlite' } {
  return { kind: 'sqlite', path: join(folder(), 'store', 'context.db'), durability: 'process' }
}

/** Opens a session that is closed after the test. */
export async function opened(options: Partial<OpenOptions> & { cwd: string }): Promise<ContextManager> {
  const manager = await ContextManager.open({
    sessionId: 's',
    store: { kind: 'memory' },
    filesystemId: FILESYSTEM,
    watch: false,
    ...options,
  })
  onCleanUp(() => manager.close())
  return manager
}

/** The circumstances of a model call of no particular kind. */
export const modelCall: ModelCall = {
  model: 'm',
  prices: { input: 1, cacheRead: 0.1, cacheWrite: 1.25 },
  contextWindow: 200_000,
  cacheTtlMs: 300_000,
  nowMs: 0,
  systemTokens: 0,
  onlyAtUserTurn: false,
  atUserTurn: true,
  rolls: true,
}

/** A path as stores and agents have it: with slashes, also on Windows. */
export function shown(path: string): string {
  return process.platform === 'win32' ? path.replaceAll('\\', '/') : path
}

/** Writes a file below a folder and gives its path. */
export function write(cwd: string, name: string, content: string | Uint8Array): string {
  const path = join(cwd, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return shown(path)
}

/** `JSON.stringify` with sorted keys: RFC 8785 in JavaScript. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(',')}}`
}

export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/** The hashes that a document must have, computed from its other fields alone. */
export function expectedHashes(document: object): { identity_hash: string; content_hash: string } {
  const { 'xt/id': _id, type, source, identity_hash: _i, content_hash: _c, source_hash: _s, ...payload } = document as Record<string, unknown>
  return { identity_hash: sha256(canonical({ type, source })), content_hash: sha256(canonical(payload)) }
}

/** Returns the outcome of a call: the code of its rejection or exception, or `undefined` if there was none. */
export async function outcome(call: () => unknown): Promise<{ code?: ErrorCode; message?: string; threw: boolean }> {
  let result: unknown
  try {
    result = call()
  } catch (error) {
    return { ...described(error), threw: true }
  }
  try {
    await result
    return { threw: false }
  } catch (error) {
    return { ...described(error), threw: false }
  }
}

function described(error: unknown): { code: ErrorCode; message: string } {
  if (!(error instanceof Error)) throw new TypeError(`no Error was thrown: ${String(error)}`)
  return { code: (error as Error & { code: ErrorCode }).code, message: error.message }
}
