/** A host on the library: a session with a projection, that starts anew, forks, and sends its conversation after each event. */
import { Projection } from '../../lib/projection/harness.ts'
import type { ShapeName } from '../../lib/projection/harness.ts'
import { ContextManager } from '../../lib/index.ts'
import type { StoreOptions } from '../../lib/index.ts'
import { FILESYSTEM } from '../core/setup.ts'
import { written } from '../hosts/conversation.ts'
import { firstFault } from './faults.ts'
import type { Found } from './faults.ts'
import { GATEWAY } from './host.ts'
import type { Event, Host } from './host.ts'
import { fault } from './oracle.ts'
import type { Recalled } from './oracle.ts'

const MODEL = { name: 'm', contextWindow: 60_000, input: 3, cacheRead: 0.3, cacheWrite: 3.75 }

/** The events that a host on the library has: all but questions on the side, which only a gateway can tell. */
export const LIBRARY: ReadonlySet<Event['do']> = new Set([...GATEWAY].filter((event) => event !== 'aside'))

/**
 * Runs events. Returns the first fault. `store`: where the sessions are kept; a session in memory does not start anew. `recalls`: the
 * number of events between two checks that restore the text of a request's IDs.
 */
export async function runLibrary(events: Iterable<Event>, shape: ShapeName, cwd: string, store: StoreOptions, recalls = 1): Promise<Found | undefined> {
  const world = new World(shape, cwd, store)
  return firstFault(events, world, (host, isEdited, after) => world.pass(host, isEdited, after % recalls === 0))
}

class World {
  readonly #shape: ShapeName
  readonly #cwd: string
  readonly #store: StoreOptions
  #manager!: ContextManager
  #projection!: Projection
  #session = 0
  #now = 0
  #hasRolled = false
  #before: readonly object[] | undefined
  #named = new Set<string>()
  /** Texts restored by IDs since something other than the end of the conversation changed. */
  readonly #back = new Map<string, Promise<Recalled | undefined>>()

  constructor(shape: ShapeName, cwd: string, store: StoreOptions) {
    this.#shape = shape
    this.#cwd = cwd
    this.#store = store
  }

  async open(): Promise<void> {
    this.#manager = await ContextManager.open({ sessionId: `s${this.#session}`, cwd: this.#cwd, store: this.#store, filesystemId: FILESYSTEM, watch: false })
    this.#projection = new Projection(this.#manager, {
      shape: this.#shape,
      model: MODEL,
      shortens: true,
      now: () => this.#now,
      onRoll: () => (this.#hasRolled = true),
      onWarning: (warning) => {
        throw new Error(warning)
      },
    })
    this.#back.clear()
  }

  async close(): Promise<void> {
    await this.#manager.close()
  }

  /** Does what happens beside the conversation. */
  async apply(event: Event): Promise<void> {
    this.#now += 1_000
    if (event.do === 'wait') this.#now += 3_600_000
    const isLasting = this.#store.kind !== 'memory'
    if (event.do !== 'fork' && (event.do !== 'restart' || !isLasting)) return
    const [parent, point] = [this.#manager.sessionId, await this.#manager.point()]
    await this.close()
    if (event.do === 'restart') return this.open()
    this.#session += 1
    await this.open()
    // Every second fork takes over the session, every other one has only the conversation.
    if (isLasting && this.#session % 2 === 0) return void (await this.#manager.restore(parent, point))
    this.#before = undefined
    this.#named = new Set()
  }

  /** Sends the conversation, and checks what is sent. */
  async pass({ steps }: Host, isEdited: boolean, recalls: boolean): Promise<string | undefined> {
    const messages = steps.flatMap((step) => written[this.#shape](step, 1))
    this.#hasRolled = false
    const sent = await this.#projection.transform(messages)
    const before = isEdited || this.#hasRolled ? undefined : this.#before
    this.#before = sent
    if (before === undefined) this.#back.clear()
    return fault({ steps, messages, sent, before, recall: recalls ? (id) => this.#once(id) : undefined, named: this.#named })
  }

  #once(id: string): Promise<Recalled | undefined> {
    const known = this.#back.get(id)
    if (known !== undefined) return known
    const back = this.#recall(id)
    this.#back.set(id, back)
    return back
  }

  async #recall(id: string): Promise<Recalled | undefined> {
    if (!(await this.#projection.permits(id))) return undefined
    const document = await this.#manager.get(id)
    if (document !== null) return { content: document.content ?? null, args: document['args'] }
    const { ok, content } = await this.#manager.activate(id)
    return ok ? { content: content ?? null } : undefined
  }
}
