/** A gateway in its own process, and the system's figures about it. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))

/** The length of a clock tick of the system, in milliseconds. */
const TICK_MS = 10

/** A running gateway. */
export class Alone {
  /** Its address, without a path. */
  readonly origin: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.origin = new URL(url).origin
  }

  /** Starts one. Rejects if the program is not built. */
  static async start(store: string, upstream: string): Promise<Alone> {
    if (!existsSync(START)) throw new Error('the gateway is not built: npm run build')
    const upstreams = ['--anthropic', upstream, '--openai', `${upstream}/v1`, '--gemini', upstream]
    const child = spawn(process.execPath, [START, 'gateway', '--listen', '0', '--store', store, ...upstreams], { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    for (;;) {
      const url = /^Anthropic +(\S+)$/m.exec(text)?.[1]
      if (url !== undefined) return new Alone(child, url)
      text += String(((await once(child.stdout!, 'data')) as [Buffer])[0])
    }
  }

  /** Its processor time so far, in milliseconds; NaN where the system does not tell. */
  get processorMs(): number {
    const fields = this.#read('stat')
      ?.replace(/^.*\) /s, '')
      .split(' ')
    return fields === undefined ? Number.NaN : TICK_MS * (Number(fields[11]) + Number(fields[12]))
  }

  /** Its resident memory in bytes; NaN where the system does not tell. */
  get memory(): number {
    return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(this.#read('status') ?? '')?.[1])
  }

  /** Ends it. */
  async close(): Promise<void> {
    this.#child.kill('SIGTERM')
    await once(this.#child, 'close')
  }

  #read(name: string): string | undefined {
    const path = `/proc/${this.#child.pid}/${name}`
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined
  }
}
