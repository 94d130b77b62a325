/** Connections through a proxy: `CONNECT`, then whatever the two ends say to each other. */
import * as http from 'node:http'
import * as https from 'node:https'
import * as net from 'node:net'
import * as tls from 'node:tls'

/** The address and options with which an agent connects. */
interface Target {
  host?: string
  port?: number | string
  servername?: string
}

type Done = (error: Error | null, socket?: net.Socket) => void

/**
 * An agent whose connections go through a proxy. The proxy sees the host's name and nothing else. `trust` are options of TLS
 * for the target, `keeping` those of connections that are kept. User and password in the proxy's address are sent to the proxy only.
 */
export function tunnelAgent(proxy: string, isSecure: boolean, trust: { ca?: string[] }, keeping: http.AgentOptions): http.Agent {
  const agent = isSecure ? new https.Agent({ ...keeping, ...trust }) : new http.Agent(keeping)
  const connection = (options: Target, done: Done): void => {
    connect(new URL(proxy), options).then(
      (socket) => done(null, isSecure ? tls.connect({ ...trust, socket, servername: options.servername ?? options.host ?? '' }) : socket),
      (error: Error) => done(error),
    )
  }
  return Object.assign(agent, { createConnection: connection })
}

/** Rejects if the proxy can't be reached or refuses. */
function connect(proxy: URL, { host = '', port = 443 }: Target): Promise<net.Socket> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const user = decodeURIComponent(`${proxy.username}:${proxy.password}`)
  const headers = { Host: target, ...(user === ':' ? {} : { 'Proxy-Authorization': `Basic ${Buffer.from(user).toString('base64')}` }) }
  const send = proxy.protocol === 'https:' ? https.request : http.request
  return new Promise((resolve, reject) => {
    const request = send({ host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'), port: proxy.port, method: 'CONNECT', path: target, headers, agent: false })
    request.once('error', reject)
    request.once('connect', ({ statusCode }, socket: net.Socket) => {
      if (statusCode === 200) return resolve(socket)
      socket.destroy()
      reject(new Error(`the proxy ${proxy.host} refuses a connection to ${target} with the status ${statusCode}`))
    })
    request.end()
  })
}
