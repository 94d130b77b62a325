/** A gateway in its own process, or the least that can stand in its place, and the system's figures about it. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))
const PROXY = fileURLToPath(new URL('proxy.mjs', import.meta.url))

/** The length of a clock tick of the system, in milliseconds. */
const TICK_MS = 10

/** A running server between client and provider. */
export class Alone {
  /** Its address, without a path. */
  readonly origin: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.origin = new URL(url).origin
  }

  /** Starts a proxy that passes everything on and looks at nothing. */
  static async proxy(upstream: string): Promise<Alone> {
    const child = spawn(process.execPath, [PROXY, upstream], { stdio: ['ignore', 'pipe', 'inherit'] })
    return new Alone(child, `http://127.0.0.1:${await said(child, /^port (\d+)$/m)}`)
  }

  /** Starts a gateway. Rejects if the program is not built. */
  static async start(store: string, upstream: string): Promise<Alone> {
    if (!existsSync(START)) throw new Error('the gateway is not built: npm run build')
    const upstreams = ['--anthropic', upstream, '--openai', `${upstream}/v1`, '--gemini', upstream]
    const child = spawn(process.execPath, [START, 'gateway', '--listen', '0', '--store', store, ...upstreams], { stdio: ['ignore', 'pipe', 'inherit'] })
    return new Alone(child, await said(child, /^Anthropic +(\S+)$/m))
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

/** The first group of some words that a program says. */
async function said(child: ChildProcess, words: RegExp): Promise<string> {
  let text = ''
  for (;;) {
    const found = words.exec(text)?.[1]
    if (found !== undefined) return found
    text += String(((await once(child.stdout!, 'data')) as [Buffer])[0])
  }
}
