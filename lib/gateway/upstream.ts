/** The connections to upstreams: directly or through the environment's proxies, with the environment's certificates. */
import { readFileSync } from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIPv4 } from 'node:net'
import { rootCertificates } from 'node:tls'
import type { Environment } from '../core/index.ts'
import { reasonOf } from '../ui/index.ts'
import { tunnelAgent } from './tunnel.ts'

/** The longest line and headers of a request or an answer, in bytes: more than clients and providers take. */
export const LARGEST_HEAD = 256 * 1024

/**
 * An unused connection is closed after this time, in milliseconds: before most balancers close one, which is after a minute. A
 * request that meets such an end can't be sent again.
 */
const REST_MS = 50_000

/** Sends requests upstream. Connections are kept open and reused. */
export class Upstream {
  readonly #env: Environment
  readonly #certificates: string[] | undefined
  readonly #keeping: http.AgentOptions
  readonly #plain: http.Agent
  readonly #secure: https.Agent
  readonly #proxied = new Map<string, http.Agent>()

  /** Throws if a file with certificates that the environment names can't be read. */
  constructor(env: Environment, restMs = REST_MS) {
    this.#env = env
    this.#certificates = certificatesOf(env)
    // Node closes a connection after this time only while it is unused.
    this.#keeping = { keepAlive: true, maxFreeSockets: 16, timeout: restMs }
    this.#plain = new http.Agent(this.#keeping)
    this.#secure = new https.Agent({ ...this.#keeping, ...this.#trust() })
  }

  /** Begins a request. `path` is what is sent as the path and query of the target; `headers` are complete, with `Host`. */
  request(target: URL, path: string, method: string, headers: readonly string[]): http.ClientRequest {
    const isSecure = target.protocol === 'https:'
    const agent = this.#agentFor(target)
    const options = { method, path, headers: headers as string[], agent, maxHeaderSize: LARGEST_HEAD, ...(isSecure ? this.#trust() : {}) }
    // A flat list of headers keeps their order, their case and their repetitions.
    const request = (isSecure ? https.request : http.request)(target, options as http.RequestOptions)
    // Headers of an answer are not counted: the size of its head has a limit.
    request.maxHeadersCount = 0
    return request
  }

  /** Ends all idle connections. */
  close(): void {
    this.#plain.destroy()
    this.#secure.destroy()
    for (const agent of this.#proxied.values()) agent.destroy()
  }

  #trust(): { ca?: string[] } {
    return this.#certificates === undefined ? {} : { ca: this.#certificates }
  }

  #agentFor(target: URL): http.Agent {
    const proxy = proxyFor(target, this.#env)
    if (proxy === undefined) return target.protocol === 'https:' ? this.#secure : this.#plain
    const key = `${target.protocol} ${proxy}`
    let agent = this.#proxied.get(key)
    if (agent === undefined) this.#proxied.set(key, (agent = tunnelAgent(proxy, target.protocol === 'https:', this.#trust(), this.#keeping)))
    return agent
  }
}

/**
 * The proxy for an address, as curl chooses it: `https_proxy` or `http_proxy` by the address's protocol, else `all_proxy`,
 * also in capital letters; none for the hosts that `no_proxy` lists, and none for this machine itself.
 */
export function proxyFor(target: URL, env: Environment): string | undefined {
  const read = (name: string): string => env[name] ?? env[name.toUpperCase()] ?? ''
  const proxy = read(`${target.protocol.slice(0, -1)}_proxy`) || read('all_proxy')
  if (proxy === '' || isLoopback(target.hostname)) return undefined
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  const host = target.hostname.toLowerCase()
  for (const entry of read('no_proxy')
    .toLowerCase()
    .split(/[\s,]+/)) {
    if (entry === '*') return undefined
    const [name = '', only] = entry.split(/:(?=\d+$)/)
    const plain = name.replace(/^\*?\./, '')
    if (plain === '' || (only !== undefined && only !== port)) continue
    if (host === plain || host.endsWith(`.${plain}`)) return undefined
  }
  return /^\w+:\/\//.test(proxy) ? proxy : `http://${proxy}`
}

/** True if a host name is this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || (host.startsWith('127.') && isIPv4(host))
}

/**
 * The certificates to trust if the environment names a file in a way that node does not read by itself; undefined for
 * node's own choice, which includes `NODE_EXTRA_CA_CERTS`.
 */
function certificatesOf(env: Environment): string[] | undefined {
  const name = env['SSL_CERT_FILE'] === undefined ? 'CODEX_CA_CERTIFICATE' : 'SSL_CERT_FILE'
  if (!hasFile(env, name)) return undefined
  const names = hasFile(env, EXTRA) ? [name, EXTRA] : [name]
  return [...rootCertificates, ...names.map((one) => certificatesIn(env, one))]
}

const EXTRA = 'NODE_EXTRA_CA_CERTS'

function hasFile(env: Environment, name: string): boolean {
  return (env[name] ?? '') !== ''
}

function certificatesIn(env: Environment, name: string): string {
  const path = env[name] as string
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`${path} can't be read: ${reasonOf(error)}; the variable ${name} names it as the certificates to trust`)
  }
}
