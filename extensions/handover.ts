/**
 * Subagents that run as separate Pi processes. The outputs that a tool call's arguments name (`id=05f49740`) are written to
 * a private folder. An environment variable of this process names that folder, and every Pi that it starts inherits it.
 * Such a Pi takes over only the outputs that its prompt names: nothing else of the parent's session, and nothing that was
 * written for another subagent.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ToolCallEvent } from '@earendil-works/pi-coding-agent'
import type { ContextManager, Toolcall } from '../index.js'
import { headerLine, namesIn } from '../lib/lines/index.ts'
import { writePrivateFile } from '../lib/core/index.ts'
import { toolOf } from './tools.ts'

/** The variable that names the folder. */
const HANDOVER = 'PI_CONTEXT_HANDOVER'

/** Tools that start no agent, although their arguments may name outputs. */
const ALONE: ReadonlySet<string> = new Set(['read', 'edit', 'write', 'grep', 'find', 'ls'])

/** The contents of a file in the folder, which has an object's name. */
type Laid = { path: string } | { call: Toolcall }

/** The outputs that this process was handed, and those that it hands over. */
export class Handover {
  /** The folder of the process that started this one. */
  readonly #from = process.env[HANDOVER]
  #folder: string | undefined

  /** Writes the outputs that a call's arguments name to the folder, if this session has them. */
  async lay(manager: ContextManager, { toolName, input }: ToolCallEvent): Promise<void> {
    if (ALONE.has(toolName) || toolOf(toolName) !== undefined) return
    const names = namesIn(JSON.stringify(input))
    if (names.length === 0) return
    const { sessionIndex } = await manager.sessionSets()
    for (const name of names) {
      const document = await manager.get(name)
      if (document === null || !sessionIndex.includes(document['xt/id'])) continue
      const { type, source, content } = document
      if (type === 'file') this.#write(name, { path: (source as { path: string }).path })
      if (type !== 'toolcall' || typeof content !== 'string') continue
      const call: Toolcall = {
        id: document['xt/id'].replace(/^toolcall:/, ''),
        tool: String(document['tool']),
        args: (document['args'] ?? {}) as object,
        content,
        status: document['status'] === 'fail' ? 'fail' : 'ok',
      }
      this.#write(name, { call })
    }
  }

  /** Takes over the outputs that a prompt names. Returns the names of those that the model can now bring back. */
  async take(manager: ContextManager, prompt: string): Promise<string[]> {
    const taken: string[] = []
    for (const name of namesIn(prompt)) {
      // If this session has the name itself, that is what it refers to.
      if ((await manager.get(name)) !== null) continue
      const laid = await this.#read(name)
      if (laid === undefined) continue
      if ('path' in laid) await manager.discover([laid.path])
      else await manager.deactivate(await manager.recordToolcall(laid.call))
      if ((await manager.get(name)) !== null) taken.push(name)
    }
    return taken
  }

  /** Removes the folder. */
  close(): void {
    if (this.#folder === undefined) return
    rmSync(this.#folder, { recursive: true, force: true })
    if (process.env[HANDOVER] === this.#folder) delete process.env[HANDOVER]
    this.#folder = undefined
  }

  #write(name: string, laid: Laid): void {
    // Folders created in this way are accessible only to the user.
    const folder = (this.#folder ??= mkdtempSync(join(tmpdir(), 'pi-context-')))
    process.env[HANDOVER] = folder
    writePrivateFile(join(folder, name), JSON.stringify(laid))
  }

  async #read(name: string): Promise<Laid | undefined> {
    for (const folder of [this.#from, this.#folder]) {
      if (folder === undefined || folder === '') continue
      try {
        return JSON.parse(await readFile(join(folder, name), 'utf8')) as Laid
      } catch (error) {
        // It was never written, or the folder was removed with the process that created it.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
    return undefined
  }
}

/** Tells a subagent's model how to read the outputs that its prompt names. */
export function handedLine(names: readonly string[], tool: string): string {
  const how = tool === 'read' ? `read with path "${headerLine(names[0] as string)}"` : `${tool} with id "${names[0]}"`
  return `Handed over with this task, whole: ${names.map(headerLine).join(', ')}. ${how} shows ${names.length === 1 ? 'it' : 'the first'}.`
}
