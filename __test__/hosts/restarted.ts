/** A harness that is started anew, for the suites of what a later process sends. */
import { expect } from 'vitest'
import { Projection } from '../../lib/projection/harness.ts'
import type { ShapeName } from '../../lib/projection/harness.ts'
import { ContextManager } from '../../lib/index.ts'
import { FILESYSTEM, folder, sqlite } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'
import { written } from './conversation.ts'
import type { Step } from './conversation.ts'

const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

/** A host that keeps only its own messages, in processes one after the other. Its sessions are in one store. */
export class Host {
  steps: Step[] = []
  canRecall = true
  #now = Date.UTC(2026, 0, 1)
  #sessions = 0
  readonly #shape: ShapeName
  readonly #place = { cwd: folder(), store: sqlite() }
  #process: { manager: ContextManager; projection: Projection } | undefined

  constructor(shape: ShapeName) {
    this.#shape = shape
  }

  /** Ends the process; the next request comes from another one. */
  async restart(): Promise<void> {
    await this.#process?.manager.close()
    this.#process = undefined
  }

  /** Continues in another session. */
  async fork(): Promise<void> {
    const { manager } = this.#process!
    const [parent, point] = [manager.sessionId, await manager.point()]
    await this.restart()
    this.#sessions += 1
    this.#process = await this.#start()
    await this.#process.manager.restore(parent, point)
  }

  /** Adds steps, and returns the messages that go out, as texts. */
  async send(...added: Step[]): Promise<string[]> {
    this.#process ??= await this.#start()
    this.steps.push(...added)
    this.#now += 1_000
    const sent = await this.#process.projection.transform(this.messages)
    return sent.map((message) => JSON.stringify(message))
  }

  get messages(): object[] {
    return this.steps.flatMap((step) => written[this.#shape](step, 1))
  }

  /** Nothing is cached any more. */
  wait(): void {
    this.#now += 3_600_000
  }

  /** The recorded text of a call's output. */
  async content(id: string): Promise<unknown> {
    const document = await this.#process!.manager.get(id)
    return document?.content
  }

  async #start(): Promise<{ manager: ContextManager; projection: Projection }> {
    const manager = await ContextManager.open({ sessionId: `s${this.#sessions}`, ...this.#place, filesystemId: FILESYSTEM, watch: false })
    onCleanUp(() => manager.close())
    const projection = new Projection(manager, {
      shape: this.#shape,
      model: MODEL,
      shortens: true,
      now: () => this.#now,
      canRecall: () => this.canRecall,
      onWarning: (warning) => expect.unreachable(warning),
    })
    return { manager, projection }
  }
}
