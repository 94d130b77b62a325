/** A session of a host in processes one after the other, for the suites of what a later process sends. */
import { expect } from 'vitest'
import { Projection } from '../../lib/projection/harness.ts'
import type { ProjectionOptions, ShapeName } from '../../lib/projection/harness.ts'
import { ContextManager } from '../../lib/index.ts'
import type { OpenOptions } from '../../lib/index.ts'
import { FILESYSTEM, folder, sqlite } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'

/** A model with usual prices. */
export const MODEL = { name: 'm', contextWindow: 200_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

/** A text that is worth collapsing. Line n of it begins with its name. */
export function lines(name: string, count: number): string {
  return Array.from({ length: count }, (_, n) => `${name} line ${n}: lorem ipsum dolor sit amet`).join('\n')
}

/** A session, and the projection of its messages. */
interface ProjectedSession {
  manager: ContextManager
  projection: Projection
}

/** A session that one process after the other works on. Nothing watches its files; the cleanup closes it. */
export class Processes {
  readonly shape: ShapeName
  readonly cwd: string
  /** The time of the next request, in milliseconds since the epoch. */
  now = Date.UTC(2026, 0, 1)
  readonly #store = sqlite()
  readonly #options: ProjectionOptions
  readonly #stay: OpenOptions['stay']
  #sessions = 0
  #running: Promise<ProjectedSession> | undefined

  constructor(shape: ShapeName, { cwd = folder(), stay, ...options }: ProjectionOptions & { cwd?: string; stay?: OpenOptions['stay'] } = {}) {
    this.shape = shape
    this.cwd = cwd
    this.#stay = stay
    this.#options = options
  }

  /** The process that runs; it is started where none does. */
  running(): Promise<ProjectedSession> {
    return (this.#running ??= this.#start())
  }

  /** The messages that go out in place of these, as texts. */
  async transform(messages: readonly object[]): Promise<string[]> {
    const { projection } = await this.running()
    return (await projection.transform([...messages])).map((message) => JSON.stringify(message))
  }

  /** Ends the process; the next request comes from another one. */
  async restart(): Promise<void> {
    await (await this.#running)?.manager.close()
    this.#running = undefined
  }

  /** Continues in another session, which begins as a fork of this one. */
  async fork(): Promise<void> {
    const { manager } = await this.running()
    const [parent, point] = [manager.sessionId, await manager.point()]
    await this.restart()
    this.#sessions += 1
    await (await this.running()).manager.restore(parent, point)
  }

  async #start(): Promise<ProjectedSession> {
    const place = { sessionId: `s${this.#sessions}`, cwd: this.cwd, store: this.#store, filesystemId: FILESYSTEM, watch: false }
    const manager = await ContextManager.open({ ...place, ...(this.#stay !== undefined && { stay: this.#stay }) })
    onCleanUp(() => manager.close())
    const own = { shape: this.shape, model: MODEL, shortens: true, now: () => this.now, onWarning: (warning: string) => expect.unreachable(warning) }
    return { manager, projection: new Projection(manager, { ...own, ...this.#options }) }
  }
}
