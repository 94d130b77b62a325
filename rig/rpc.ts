/** The real Pi in RPC mode: commands in, events out, one JSON object a line. */
import { deadline, onCleanUp } from './cleanup.ts'
import { piArguments } from './options.ts'
import type { PiOptions } from './options.ts'
import { PiProcess } from './process.ts'
import type { Exit } from './process.ts'

/** A record that Pi wrote: a session event, a response, or an extension's request to the user. */
export interface RpcEvent {
  type: string
  [field: string]: any
}

/** Answers an extension's dialog; what it returns is put into the `extension_ui_response`. */
export type DialogAnswer = (request: RpcEvent) => { value: string } | { confirmed: boolean } | { cancelled: true }

/** Starts Pi in RPC mode and waits until it answers commands. */
export async function startRpc(options: PiOptions & { dialog?: DialogAnswer }): Promise<PiRpc> {
  const rpc = new PiRpc(options)
  await rpc.state()
  return rpc
}

/** A running Pi in RPC mode. Make one with {@link startRpc}. */
export class PiRpc {
  readonly process: PiProcess
  /** Every record so far, in order. */
  readonly events: RpcEvent[] = []
  readonly #timeoutMs: number
  readonly #dialog: DialogAnswer
  readonly #waiting = new Set<{ test: (event: RpcEvent) => boolean; found: (event: RpcEvent) => void }>()
  #rest = ''
  #commands = 0

  constructor(options: PiOptions & { dialog?: DialogAnswer }) {
    this.#timeoutMs = options.timeoutMs ?? 60_000
    this.#dialog = options.dialog ?? (({ method }) => (method === 'confirm' ? { confirmed: true } : { cancelled: true }))
    this.process = new PiProcess({
      args: ['--mode', 'rpc', ...piArguments(options)],
      cwd: options.cwd ?? options.home.cwd,
      env: { ...options.home.env, ...options.env },
      input: true,
    })
    this.process.child.stdout?.on('data', (text: string) => this.#read(text))
    // Writing to a process that has died fails here; a waiting caller learns of it from the process's end.
    this.process.child.stdin?.on('error', () => {})
    onCleanUp(() => this.#endsWell())
  }

  /** The position after the last record, to be given to {@link waitFor} as `from`. */
  get mark(): number {
    return this.events.length
  }

  /**
   * The first record from position `from` on that passes `test`, already there or still to come. `test` may be a
   * record's type. Rejects with Pi's output when the process ends first or the time is over.
   */
  async waitFor(test: string | ((event: RpcEvent) => boolean), from = this.mark): Promise<RpcEvent> {
    const passes = typeof test === 'string' ? (event: RpcEvent) => event.type === test : test
    const there = this.events.slice(from).find(passes)
    if (there !== undefined) return there
    const waiting = { test: passes, found: (_event: RpcEvent) => {} }
    const found = new Promise<RpcEvent>((resolve) => (waiting.found = resolve))
    this.#waiting.add(waiting)
    const ended = this.process.ended.then(() => {
      throw new Error(this.#describe('ended before the expected event'))
    })
    try {
      const explain = () => this.#describe(`has not sent ${typeof test === 'string' ? test : 'the expected event'}`)
      return await deadline(Promise.race([found, ended]), this.#timeoutMs, explain)
    } finally {
      this.#waiting.delete(waiting)
    }
  }

  /** Sends a command and resolves with its response's `data`. Rejects with Pi's sentence when it is refused. */
  async command(command: { type: string; [field: string]: unknown }): Promise<any> {
    const id = `command-${this.#commands}`
    this.#commands += 1
    const from = this.mark
    this.send({ id, ...command })
    const response = await this.waitFor((event) => event.type === 'response' && event['id'] === id, from)
    if (response['success'] !== true) throw new Error(`${command.type}: ${response['error']}`)
    return response['data']
  }

  /** Writes one record, whatever it is. */
  send(record: object): void {
    this.process.child.stdin?.write(`${JSON.stringify(record)}\n`)
  }

  /**
   * Sends a user prompt and waits until Pi has settled: retries, compaction and queued messages included. Resolves
   * with the records of this run. Not for an extension's `/command`, which starts no run: use {@link command}.
   */
  async prompt(message: string): Promise<RpcEvent[]> {
    const from = this.mark
    await this.command({ type: 'prompt', message })
    await this.waitFor('agent_settled', from)
    return this.events.slice(from)
  }

  /** Pi's state: `sessionId`, `sessionFile`, `model` and more. */
  state(): Promise<Record<string, any>> {
    return this.command({ type: 'get_state' })
  }

  /** SIGKILL. */
  kill9(): Promise<Exit> {
    return this.process.kill9()
  }

  /**
   * Closes Pi's input and waits for its orderly end. Rejects, after killing it, when something holds it (such as an
   * addon that keeps the event loop alive).
   */
  async close(): Promise<Exit> {
    this.process.child.stdin?.end()
    return this.process.wait(this.#timeoutMs)
  }

  /** A test that leaves Pi open has it closed at its end, which must be an orderly one. */
  async #endsWell(): Promise<void> {
    if (!this.process.running) return
    this.process.child.stdin?.end()
    const { code } = await this.process.wait(20_000)
    if (code !== 0) throw new Error(this.#describe(`ended with ${code}`))
  }

  /** Lines end with LF only: U+2028 and its like are allowed inside of a record. */
  #read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() as string
    for (const line of lines) {
      const event = parse(line)
      this.events.push(event)
      for (const waiting of this.#waiting) {
        if (!waiting.test(event)) continue
        this.#waiting.delete(waiting)
        waiting.found(event)
      }
      if (event.type === 'extension_ui_request' && DIALOGS.has(event['method'])) {
        this.send({ type: 'extension_ui_response', id: event['id'], ...this.#dialog(event) })
      }
    }
  }

  #describe(what: string): string {
    const types = this.events.slice(-25).map((event) => JSON.stringify(event).slice(0, 300))
    return `${this.process.describe(what)}\n--- last events\n${types.join('\n')}`
  }
}

/** The requests to the user that wait for an answer. */
const DIALOGS = new Set(['select', 'confirm', 'input', 'editor'])

function parse(line: string): RpcEvent {
  try {
    return JSON.parse(line)
  } catch {
    // Something printed on the protocol's stream; a test can find it as an event of this type.
    return { type: 'not_json', line }
  }
}
