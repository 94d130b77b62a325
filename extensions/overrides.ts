/**
 * Pi's own read, write and edit with operations that also hand us the bytes: the whole file for a read, even if the
 * model asked for a part, and the final text for a write. Everything else about the tools is Pi's.
 */
import { constants } from 'node:fs'
import { access, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import {
  createEditToolDefinition,
  createReadToolDefinition,
  createWriteToolDefinition,
  DEFAULT_MAX_BYTES,
  detectSupportedImageMimeTypeFromFile,
  formatSize,
  getAgentDir,
  SettingsManager,
  withFileMutationQueue,
} from '@earendil-works/pi-coding-agent'
import type { ExtensionAPI, ExtensionContext, ReadOperations } from '@earendil-works/pi-coding-agent'
import type { EditGuard } from '../index.js'
import { nameInPath } from '../lib/lines/index.ts'
import { textOf } from './results.ts'

/** Receives the bytes. Only `recall` rejects: a file that can't be indexed is still read and written. */
export interface FileObserver {
  /** A program of the model makes the call; its value must then be what it would be without us. */
  isNested(callId: string): boolean
  /** The agent's call with this ID has read a file. */
  read(path: string, bytes: Uint8Array, callId: string): Promise<void>
  /** A program of the agent has read a file that the model has not seen. The path is as the program gave it. */
  met(path: string): Promise<void>
  /** The answer to give instead of `shown`, if the model can still see these lines; undefined: show the lines. */
  answer(path: string, lines: ReadLines, shown: string, callId: string): Promise<string | undefined>
  /**
   * Decides what to do about an edit of these texts, or a write of the whole file, if the model does not know the file's
   * current version.
   */
  guard(path: string, oldTexts: string[] | undefined, callId: string): Promise<EditGuard>
  /** The text of an output or a file that the model, or one of its programs, reads by id. Rejects with a message. */
  recall(name: string, nested: boolean): Promise<string>
  /** The agent's call with this ID has written a file. */
  written(path: string, content: string, callId: string): Promise<void>
}

/** The lines that a read asks for. */
interface ReadLines {
  /** The first line, counted from 1. */
  offset?: number
  /** The number of lines. */
  limit?: number
}

/**
 * Replaces those of the three tools that are active and Pi's own. Tools that the user has switched off stay off, and
 * tools of other extensions stay as they are. Returns the names of the replaced tools.
 */
export function overrideTools(pi: ExtensionAPI, ctx: ExtensionContext, observer: FileObserver): string[] {
  const active = new Set(pi.getActiveTools())
  const own = new Set(
    pi
      .getAllTools()
      .filter((tool) => tool.sourceInfo.source === 'builtin')
      .map((tool) => tool.name),
  )
  const names = ['read', 'write', 'edit'].filter((name) => active.has(name) && own.has(name))
  if (names.includes('read')) overrideRead(pi, ctx, observer)
  if (names.includes('write')) overrideWrite(pi, ctx, observer)
  if (names.includes('edit')) overrideEdit(pi, ctx, observer)
  return names
}

function overrideRead(pi: ExtensionAPI, ctx: ExtensionContext, observer: FileObserver): void {
  const autoResizeImages = imageAutoResize(ctx)
  pi.registerTool({
    ...createReadToolDefinition(ctx.cwd),
    async execute(id, input, signal, update, context) {
      const nested = observer.isNested(id)
      const object = nameInPath(input.path)
      if (object !== undefined) {
        const text = await observer.recall(object, nested)
        const pieces = inShorterLines(text)
        const own = createReadToolDefinition(context.cwd, { operations: kept(pieces ?? text) })
        const result = await own.execute(id, input, signal, update, context)
        return pieces === undefined ? result : { ...result, content: [...result.content, { type: 'text' as const, text: IN_PIECES }] }
      }
      if (nested) {
        const result = await createReadToolDefinition(context.cwd, { autoResizeImages }).execute(id, input, signal, update, context)
        await observer.met(input.path)
        return result
      }
      let found: string | undefined
      const operations = {
        // Pi's write creates or empties a file before filling it, so a concurrent read waits until it is done.
        access: (path: string) => withFileMutationQueue(path, () => readable(path)),
        detectImageMimeType: detectSupportedImageMimeTypeFromFile,
        async readFile(path: string): Promise<Buffer> {
          const bytes = await withFileMutationQueue(path, () => readFile(path))
          await observer.read(path, bytes, id)
          found = path
          return bytes
        },
      }
      const own = createReadToolDefinition(context.cwd, { autoResizeImages, operations })
      const result = await own.execute(id, input, signal, update, context)
      if (found === undefined || result.content.some((block) => block.type !== 'text')) return result
      const text = await observer.answer(found, input, textOf(result.content), id)
      return text === undefined ? result : { content: [{ type: 'text', text }], details: undefined }
    },
  })
}

/** UTF-16 units of a piece of a line: several pieces fit what Pi's read shows at once. */
const PIECE = 10_000

const IN_PIECES = `[A line of more than ${formatSize(DEFAULT_MAX_BYTES)} is shown in pieces of ${PIECE} characters, each on a separate line.]`

/**
 * A text with its longest lines in pieces; undefined if Pi's read shows each of its lines. Pi shows nothing of a line above its limit, and
 * advises commands that need a file.
 */
export function inShorterLines(text: string): string | undefined {
  if (Buffer.byteLength(text) <= DEFAULT_MAX_BYTES) return undefined
  const lines = text.split('\n')
  const shorter = lines.flatMap((line) => (Buffer.byteLength(line) <= DEFAULT_MAX_BYTES ? [line] : piecesOf(line)))
  return shorter.length === lines.length ? undefined : shorter.join('\n')
}

function piecesOf(line: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < line.length;) {
    const end = at + PIECE
    // A character of two units stays whole.
    const cut = /[\uD800-\uDBFF]/.test(line[end - 1] ?? '') ? end - 1 : end
    pieces.push(line.slice(at, cut))
    at = cut
  }
  return pieces
}

/** A text from the store, in the form that Pi's read accepts. */
function kept(text: string): ReadOperations {
  return {
    access: () => Promise.resolve(),
    readFile: () => Promise.resolve(Buffer.from(text)),
  }
}

function overrideWrite(pi: ExtensionAPI, ctx: ExtensionContext, observer: FileObserver): void {
  const own = (cwd: string, callId: string, nested: boolean) => {
    const operations = {
      async writeFile(path: string, content: string): Promise<void> {
        // Another program may have changed the text that this write would replace.
        const { refusal } = nested ? GO_AHEAD : await observer.guard(path, undefined, callId)
        if (refusal !== undefined) throw new Error(refusal)
        await write(path, content, observer, callId)
      },
      async mkdir(path: string): Promise<void> {
        await mkdir(path, { recursive: true })
      },
    }
    return createWriteToolDefinition(cwd, { operations })
  }
  pi.registerTool({
    ...own(ctx.cwd, '', false),
    execute: (id, input, signal, update, context) => own(context.cwd, id, observer.isNested(id)).execute(id, input, signal, update, context),
  })
}

function overrideEdit(pi: ExtensionAPI, ctx: ExtensionContext, observer: FileObserver): void {
  pi.registerTool({
    ...createEditToolDefinition(ctx.cwd),
    async execute(id, input, signal, update, context) {
      const nested = observer.isNested(id)
      let difference: string | undefined
      const operations = {
        access: (path: string) => access(path, constants.R_OK | constants.W_OK),
        async readFile(path: string): Promise<Buffer> {
          const guard = nested ? GO_AHEAD : await observer.guard(path, oldTexts(input), id)
          if (guard.refusal !== undefined) throw new Error(guard.refusal)
          difference = guard.difference
          return readFile(path)
        },
        writeFile: (path: string, content: string) => write(path, content, observer, id),
      }
      const own = createEditToolDefinition(context.cwd, { operations })
      const result = await own.execute(id, input, signal, update, context)
      if (difference === undefined) return result
      return { ...result, content: [...result.content, { type: 'text' as const, text: difference }] }
    },
  })
}

const GO_AHEAD: EditGuard = {}

/** The texts that an edit replaces; undefined if its arguments have another shape. */
function oldTexts(input: unknown): string[] | undefined {
  const { edits } = input as { edits?: unknown }
  const all: unknown[] = Array.isArray(edits) ? edits : [input]
  const texts = all.map((edit) => (edit as { oldText?: unknown } | null)?.oldText)
  return texts.every((text) => typeof text === 'string') ? texts : undefined
}

async function write(path: string, content: string, observer: FileObserver, callId: string): Promise<void> {
  await writeFile(path, content, 'utf-8')
  await observer.written(path, content, callId)
}

/** Refuses what would never end (a pipe) or has no bytes (a directory), with a message. */
async function readable(path: string): Promise<void> {
  const found = await stat(path)
  if (found.isDirectory()) throw new Error(`${path} is a directory; list it with ls`)
  if (!found.isFile()) throw new Error(`${path} is not a regular file but ${found.isFIFO() ? 'a named pipe' : 'a device or socket'}`)
  await access(path, constants.R_OK)
}

/** The user's setting, which Pi gives to its own read tool. */
function imageAutoResize(ctx: ExtensionContext): boolean {
  const options = { projectTrusted: ctx.isProjectTrusted() }
  return SettingsManager.create(ctx.cwd, getAgentDir(), options).getImageAutoResize()
}
