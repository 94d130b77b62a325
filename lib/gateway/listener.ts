/** A server on a port, whose connections end with it. */
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** See the module. */
export class Listener {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Its origin, such as `http://127.0.0.1:18686`; undefined if it does not listen. */
  get origin(): string | undefined {
    const at = this.#server.address() as AddressInfo | null
    return at === null ? undefined : `http://${at.address.includes(':') ? `[${at.address}]` : at.address}:${at.port}`
  }

  /** The port that it listens on. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Listens. Rejects with the error of the system if the port is taken. */
  listen(port: number, host: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}
