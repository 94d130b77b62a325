/** The canonical view, sent unchanged with every call: system prompt, metadata pool, chat, active content. */
import type { ContextManager } from '../../session/index.ts'
import { activeHeading } from '../../lines/index.ts'
import { blocksOf, Calls, isSent, systemBlock, textBlock, textOf } from '../../recordings/index.ts'
import type { FileEvent, Message, RecordedEntry, ReplayBlock } from '../../recordings/index.ts'
import { openManager } from './engine.ts'
import type { PolicyMoment, Policy, Request, Setting } from './policy.ts'

/** The policy `sections`. */
export class Sections implements Policy {
  readonly name = 'sections'
  readonly untagged = true
  readonly #manager: ContextManager
  readonly #calls = new Calls()
  readonly #system: ReplayBlock
  readonly #points = new Map<string, number>()

  static async open(setting: Setting): Promise<Sections> {
    const { store: _, ...rest } = setting
    return new Sections(await openManager(rest), setting)
  }

  private constructor(manager: ContextManager, setting: Setting) {
    this.#manager = manager
    const tokens = setting.systemTokens + setting.manager.overheadTokens
    this.#system = systemBlock('with the tools of the context manager', tokens * setting.unitsPerToken)
  }

  async add(entry: RecordedEntry, file: FileEvent | undefined): Promise<void> {
    const { message } = entry
    this.#calls.add(message)
    if (!isSent(message)) return
    if (message.role === 'assistant') await this.#manager.appendTurn(message)
    else if (message.role !== 'toolResult') await this.#manager.appendTurn({ ...asUser(entry) })
    else {
      if (file?.kind === 'read') await this.#manager.indexFile(file.path, Buffer.from(file.content))
      if (file?.kind === 'written') await this.#manager.indexWritten(file.path, Buffer.from(file.content))
      const call = this.#calls.of(message.toolCallId)
      await this.#manager.recordToolcall({
        id: message.toolCallId ?? '',
        tool: message.toolName ?? call?.name ?? 'unknown',
        args: call?.args ?? {},
        content: textOf(message),
        status: message.isError === true ? 'fail' : 'ok',
      })
    }
    this.#points.set(entry.key, await this.#manager.point())
  }

  async branch(path: readonly RecordedEntry[]): Promise<void> {
    const last = path.findLast((entry) => this.#points.has(entry.key))
    if (last !== undefined) await this.#manager.restore(this.#manager.sessionId, this.#points.get(last.key) as number)
  }

  async request(_moment: PolicyMoment): Promise<Request> {
    const { metadataPool, chat, blocks } = await this.#manager.assemble()
    const pool = metadataPool === '' ? [] : [textBlock(metadataPool, 'metadata pool')]
    const messages = (chat as Message[]).flatMap((message) => blocksOf({ key: '', message }, this.#calls))
    const active = blocks.map(({ id, content }) => textBlock(`${activeHeading(id)}\n${content}`, 'active content'))
    return { blocks: [this.#system, ...pool, ...messages, ...active], fixed: 1 }
  }

  async close(): Promise<void> {
    await this.#manager.close()
  }
}

/** Returns what the user or the harness said, as a user's message. */
function asUser({ key, message }: RecordedEntry): Message {
  if (message.role === 'user') return message
  const text = blocksOf({ key, message }, new Calls())
    .flatMap((block) => block.texts)
    .join('\n')
  return { role: 'user', content: [{ type: 'text', text }] }
}
