/** Servers of tests on free ports of this machine, and what they send byte for byte. */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { onCleanUp } from './cleanup.ts'

/** Starts a server that ends with the test. Returns its address. */
export async function listening(server: Server & { closeAllConnections?: () => void }, host = '127.0.0.1'): Promise<string> {
  server.listen(0, host)
  await once(server, 'listening')
  onCleanUp(() => {
    server.closeAllConnections?.()
    server.close()
  })
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`
}

/** Sends these bytes over a separate connection. Returns all that comes, one character for each byte, once the other side has closed it. */
export async function answerTo(url: string, ...bytes: readonly (string | Buffer)[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname.replace(/^\[(.*)\]$/, '$1'))
  onCleanUp(() => void socket.destroy())
  socket.on('error', () => {})
  let got = ''
  socket.on('data', (data: Buffer) => (got += data.toString('latin1')))
  for (const part of bytes) socket.write(part)
  await once(socket, 'close')
  return got
}
