/**
 * The server of the page, on a separate origin: it never serves an upstream's answer, so a site can't
 * bring its own content into the page's origin, whatever it makes a browser send to the gateway.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { nameOf } from '../access.ts'
import { sentenceOf } from '../../core/index.ts'
import { Listener } from '../listener.ts'
import { refuse } from '../refusal.ts'
import { OWN } from '../routes.ts'
import { isLoopback } from '../upstream.ts'
import type { Page } from './page.ts'

/** A server on loopback for a {@link Page}. */
export class PageServer {
  readonly #page: Page
  readonly #listener: Listener

  constructor(page: Page) {
    this.#page = page
    const server = createServer((request, response) => void this.#serve(request, response))
    server.on('upgrade', (_request, socket) => socket.destroy())
    this.#listener = new Listener(server)
  }

  /** The page's origin; undefined if the server does not listen. */
  get origin(): string | undefined {
    return this.#listener.origin
  }

  /** Listens on a port, or on a free one if that is taken. Rejects with the error of the system if there is none. */
  async listen(host: '127.0.0.1' | '::1', port: number): Promise<void> {
    await this.#listener.listen(port, host).catch((error: unknown) => {
      if (port === 0) throw error
      return this.#listener.listen(0, host)
    })
  }

  /** Ends all connections. */
  close(): Promise<void> {
    return this.#listener.close()
  }

  /** Serves one request. Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    request.on('error', () => {})
    const { url = '/', headers } = request
    try {
      const name = nameOf(headers.host ?? '')
      if (!isLoopback(name)) return refuse(headers, response, 421, `the page is not ${headers.host ?? 'without a name'}`)
      const path = url.startsWith(`${OWN}/`) ? url.slice(OWN.length) : undefined
      if (path === undefined) return refuse(headers, response, 404, WHERE)
      await this.#page.serve(request, response, path, `http://${name}:${this.#listener.port}`)
    } catch (error) {
      if (response.destroyed) return
      if (response.headersSent) response.destroy()
      else refuse(headers, response, 500, sentenceOf(error))
    }
  }
}

const WHERE = `the page is at ${OWN}/ with the key that the terminal shows`
