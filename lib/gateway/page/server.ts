/**
 * The server of the page, on a separate origin: it never serves an upstream's answer, so a site can't
 * bring its own content into the page's origin, whatever it makes a browser send to the gateway.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { nameOf } from '../access.ts'
import { sentenceOf } from '../../core/index.ts'
import { refuse } from '../refusal.ts'
import { OWN } from '../routes.ts'
import { isLoopback } from '../upstream.ts'
import type { Page } from './page.ts'

/** A server on loopback for a {@link Page}. */
export class PageServer {
  readonly #page: Page
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(page: Page) {
    this.#page = page
    this.#server = createServer((request, response) => void this.#serve(request, response))
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('upgrade', (_request, socket) => socket.destroy())
  }

  /** The page's origin, such as `http://127.0.0.1:18686`; undefined if the server does not listen. */
  get origin(): string | undefined {
    const at = this.#server.address() as AddressInfo | null
    return at === null ? undefined : `http://${at.address.includes(':') ? `[${at.address}]` : at.address}:${at.port}`
  }

  /** Listens on a port, or on a free one if that is taken. Rejects with the error of the system if there is none. */
  async listen(host: '127.0.0.1' | '::1', port: number): Promise<void> {
    await this.#listen(host, port).catch((error: unknown) => {
      if (port === 0) throw error
      return this.#listen(host, 0)
    })
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
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
      const { port } = this.#server.address() as AddressInfo
      await this.#page.serve(request, response, path, `http://${name}:${port}`)
    } catch (error) {
      if (response.destroyed) return
      if (response.headersSent) response.destroy()
      else refuse(headers, response, 500, sentenceOf(error))
    }
  }
}

const WHERE = `the page is at ${OWN}/ with the key that the terminal shows`
