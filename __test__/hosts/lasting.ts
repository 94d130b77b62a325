/** A host whose session lasts: it starts anew, or forks, and sends its conversation each time a cache has ended. */
import { expect } from 'vitest'
import { Projection } from '../../lib/projection/harness.ts'
import type { ShapeName } from '../../lib/projection/harness.ts'
import { ContextManager } from '../../lib/index.ts'
import type { StoreOptions } from '../../lib/index.ts'
import { FILESYSTEM, folder, sqlite } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'

const MODEL = { name: 'm', contextWindow: 60_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

export class LastingHost {
  readonly messages: object[] = []
  readonly #shape: ShapeName
  readonly #store: StoreOptions = sqlite()
  readonly #cwd = folder()
  #session = 's'
  #now = 0
  #manager!: ContextManager
  #projection!: Projection

  constructor(shape: ShapeName) {
    this.#shape = shape
  }

  async open(): Promise<void> {
    const manager = await ContextManager.open({ sessionId: this.#session, cwd: this.#cwd, store: this.#store, filesystemId: FILESYSTEM, watch: false })
    onCleanUp(() => manager.close())
    this.#manager = manager
    this.#projection = new Projection(manager, {
      shape: this.#shape,
      model: MODEL,
      shortens: true,
      now: () => this.#now,
      onWarning: (warning) => expect.unreachable(warning),
    })
  }

  async restart(): Promise<void> {
    await this.#manager.close()
    await this.open()
  }

  async fork(): Promise<void> {
    const [parent, point] = [this.#session, await this.#manager.point()]
    this.#session = 'fork'
    await this.restart()
    await this.#manager.restore(parent, point)
  }

  /** The messages that are sent with these added. */
  send(added: readonly object[] = []): Promise<object[]> {
    this.#now += 600_000
    this.messages.push(...added)
    return this.#projection.transform(this.messages)
  }

  /** The outputs that the record has under a call's ID. */
  async outputs(call: string): Promise<string[]> {
    const { sessionIndex } = await this.#manager.sessionSets()
    return sessionIndex.filter((id) => id.includes(call))
  }
}

/** The length of messages in JSON. */
export function lengthOf(messages: readonly object[]): number {
  return JSON.stringify(messages).length
}
