/**
 * Pi's own read, write and edit with operations that hand the bytes over: a read gives the whole file, also where the
 * model asked for a part, and a write the final text. Everything else of the tools is Pi's.
 */
import { constants } from 'node:fs'
import { access, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import {
  createEditToolDefinition,
  createReadToolDefinition,
  createWriteToolDefinition,
  detectSupportedImageMimeTypeFromFile,
  getAgentDir,
  SettingsManager,
  withFileMutationQueue,
} from '@earendil-works/pi-coding-agent'
import type { ExtensionAPI, ExtensionContext, ReadOperations } from '@earendil-works/pi-coding-agent'
import { objectIn } from './recall.ts'
import { textOf } from './results.ts'

/** Where the bytes go. None of it rejects: a file that can't be indexed is still read and written. */
export interface FileObserver {
  /** Whether a program of the model makes a call: then its value must be what it is without us. */
  isNested(callId: string): boolean
  /** The agent has read a file. */
  read(path: string, bytes: Uint8Array): Promise<void>
  /** A program of the agent has read a file, which the model saw nothing of. The path is as the program gave it. */
  met(path: string): Promise<void>
  /** What to answer instead of `shown`, lines that the model has before it already; undefined: show the lines. */
  answer(path: string, lines: { offset?: number; limit?: number }, shown: string): Promise<string | undefined>
  /** Why an edit must not go on, for the model: the file is not what it knows; undefined: go on. */
  refusal(path: string): Promise<string | undefined>
  /** The text of an output or a file that the model, or a program of it, reads by its id. Rejects with a sentence. */
  recall(name: string, nested: boolean): Promise<string>
  /** The agent has written a file. */
  written(path: string, content: string): Promise<void>
}

/**
 * Replaces those of the three tools that are active and Pi's own. A tool that the user has switched off stays off,
 * and another extension's stays as it is. Returns the names of the replaced ones.
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
      const object = objectIn(input.path)
      if (object !== undefined) {
        const operations = kept(await observer.recall(object, nested))
        const own = createReadToolDefinition(context.cwd, { operations })
        return own.execute(id, input, signal, update, context)
      }
      if (nested) {
        const result = await createReadToolDefinition(context.cwd, { autoResizeImages }).execute(id, input, signal, update, context)
        await observer.met(input.path)
        return result
      }
      let found: string | undefined
      const operations = {
        // Pi's write empties a file before it fills it, and makes it first: a read beside it waits for its end.
        access: (path: string) => withFileMutationQueue(path, () => readable(path)),
        detectImageMimeType: detectSupportedImageMimeTypeFromFile,
        async readFile(path: string): Promise<Buffer> {
          const bytes = await withFileMutationQueue(path, () => readFile(path))
          await observer.read(path, bytes)
          found = path
          return bytes
        },
      }
      const own = createReadToolDefinition(context.cwd, { autoResizeImages, operations })
      const result = await own.execute(id, input, signal, update, context)
      if (found === undefined || result.content.some((block) => block.type !== 'text')) return result
      const text = await observer.answer(found, input, textOf(result.content))
      return text === undefined ? result : { content: [{ type: 'text', text }], details: undefined }
    },
  })
}

/** What is in the store, as Pi's read takes it. */
function kept(text: string): ReadOperations {
  return {
    access: () => Promise.resolve(),
    readFile: () => Promise.resolve(Buffer.from(text)),
  }
}

function overrideWrite(pi: ExtensionAPI, ctx: ExtensionContext, observer: FileObserver): void {
  const operations = {
    writeFile: (path: string, content: string) => write(path, content, observer),
    async mkdir(path: string): Promise<void> {
      await mkdir(path, { recursive: true })
    },
  }
  const own = (cwd: string) => createWriteToolDefinition(cwd, { operations })
  pi.registerTool({
    ...own(ctx.cwd),
    execute: (id, input, signal, update, context) =>
      own(context.cwd).execute(id, input, signal, update, context),
  })
}

function overrideEdit(pi: ExtensionAPI, ctx: ExtensionContext, observer: FileObserver): void {
  const own = (cwd: string, nested: boolean) => {
    const operations = {
      access: (path: string) => access(path, constants.R_OK | constants.W_OK),
      async readFile(path: string): Promise<Buffer> {
        const refusal = nested ? undefined : await observer.refusal(path)
        if (refusal !== undefined) throw new Error(refusal)
        return readFile(path)
      },
      writeFile: (path: string, content: string) => write(path, content, observer),
    }
    return createEditToolDefinition(cwd, { operations })
  }
  pi.registerTool({
    ...own(ctx.cwd, false),
    execute: (id, input, signal, update, context) =>
      own(context.cwd, observer.isNested(id)).execute(id, input, signal, update, context),
  })
}

async function write(path: string, content: string, observer: FileObserver): Promise<void> {
  await writeFile(path, content, 'utf-8')
  await observer.written(path, content)
}

/** Refuses, with a sentence, what would never end (a pipe) or has no bytes to give (a directory). */
async function readable(path: string): Promise<void> {
  const found = await stat(path)
  if (found.isDirectory()) throw new Error(`${path} is a directory; list it with ls`)
  if (!found.isFile())
    throw new Error(
      `${path} is not a regular file but ${found.isFIFO() ? 'a named pipe' : 'a device or socket'}`,
    )
  await access(path, constants.R_OK)
}

/** The user's setting, which Pi gives to its own read tool. */
function imageAutoResize(ctx: ExtensionContext): boolean {
  const options = { projectTrusted: ctx.isProjectTrusted() }
  return SettingsManager.create(ctx.cwd, getAgentDir(), options).getImageAutoResize()
}
