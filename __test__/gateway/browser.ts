/** A headless Chromium, driven over a pipe (Chrome DevTools Protocol). */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import { folder } from '../core/setup.ts'
import { onCleanUp } from '../../rig/cleanup.ts'

/** The browser's command; undefined where there is none. */
export const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'].find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0)

if (CHROMIUM === undefined) process.stderr.write('skipped: the page in a browser (chromium is missing)\n')

type Params = Record<string, any>

/** One page in its own browser. */
export class Browser {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { done: (result: Params) => void; failed: (error: Error) => void }>()
  readonly #listeners: ((method: string, params: Params) => void)[] = []
  #session: string | undefined
  #last = 0
  /** The addresses of all requests that the page has made. */
  readonly requested: string[] = []
  /** Errors in the page. */
  readonly errors: string[] = []

  private constructor(child: ChildProcess) {
    this.#child = child
    let text = ''
    ;(child.stdio[4] as Readable).setEncoding('utf8').on('data', (data: string) => {
      const messages = (text + data).split('\0')
      text = messages.pop() ?? ''
      for (const message of messages) this.#take(JSON.parse(message) as Params)
    })
  }

  /** Starts one with an empty page. `more` are further flags. */
  static async start(...more: string[]): Promise<Browser> {
    const profile = folder()
    const flags = [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--hide-scrollbars',
      '--no-first-run',
      '--disable-background-networking',
      '--remote-debugging-pipe',
      `--user-data-dir=${profile}`,
      ...more,
    ]
    const child = spawn(CHROMIUM as string, [...flags, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    onCleanUp(async () => {
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
      // Its helpers may still write for a moment.
      await rm(profile, { recursive: true, force: true, maxRetries: 10 })
    })
    const browser = new Browser(child)
    const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' })
    browser.#session = (await browser.send('Target.attachToTarget', { targetId, flatten: true }))['sessionId'] as string
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await browser.send(`${domain}.enable`)
    browser.on((method, params) => {
      if (method === 'Network.requestWillBeSent') browser.requested.push(params['request'].url as string)
      if (method === 'Runtime.exceptionThrown') browser.errors.push(JSON.stringify(params['exceptionDetails']))
      if (method === 'Log.entryAdded' && params['entry'].level === 'error') browser.errors.push(params['entry'].text as string)
    })
    return browser
  }

  /** Calls a method of the protocol. */
  send(method: string, params: Params = {}): Promise<Params> {
    const id = (this.#last += 1)
    const session = this.#session === undefined ? {} : { sessionId: this.#session }
    ;(this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...session })}\0`)
    return new Promise((done, failed) => this.#waiting.set(id, { done, failed }))
  }

  /** Calls a listener for each event. */
  on(listener: (method: string, params: Params) => void): void {
    this.#listeners.push(listener)
  }

  /** Goes to an address, and waits until it is loaded. */
  async open(url: string): Promise<void> {
    const loaded = this.loaded()
    await this.send('Page.navigate', { url })
    await loaded
  }

  /** Resolves when a document has been loaded. */
  loaded(): Promise<void> {
    return new Promise((resolve) => this.on((method) => method === 'Page.loadEventFired' && resolve()))
  }

  /** The value of an expression in the page; of its promise, if it is one. */
  async value<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
    return result.value as T
  }

  /** Waits until an expression is true: the page looks again after each change of itself. */
  async until(expression: string, limitMs = 20_000): Promise<void> {
    const wait = `new Promise((done, failed) => {
      const look = () => { if (${expression}) { seen.disconnect(); done(true) } }
      const seen = new MutationObserver(look)
      seen.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
      setTimeout(() => failed(new Error('not in time: ' + ${JSON.stringify(expression)} + '\\n' + document.body.innerText.slice(0, 2000))), ${limitMs})
      look()
    })`
    await this.value(wait)
  }

  /** Presses and releases keys, one after the other. */
  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      const text = key.length === 1 ? { text: key } : key === 'Enter' ? { text: '\r' } : {}
      const code = { Enter: 13, Tab: 9, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, End: 35, Home: 36 }[key]
      const event = { key, ...(code === undefined ? {} : { windowsVirtualKeyCode: code }) }
      await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event, ...text })
      await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
    }
  }

  /** Sets the window's width, and whether the person prefers dark pages. */
  async look(width: number, height: number, isDark: boolean): Promise<void> {
    await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 500 })
    await this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }] })
  }

  /** A picture of the window. */
  async picture(): Promise<Buffer> {
    await this.value('new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(painted, 50))))')
    return Buffer.from((await this.send('Page.captureScreenshot', { format: 'png' }))['data'] as string, 'base64')
  }

  #take({ id, result, error, method, params }: Params): void {
    if (id === undefined) {
      for (const listener of this.#listeners) listener(method, params)
      return
    }
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.done(result)
    else waiting?.failed(new Error(`${error.message}`))
  }
}
