/** The options of a gateway, as its caller gives them. */
import type { Environment, HostName } from '../core/index.ts'
import type { LifetimeOption } from '../models/index.ts'
import type { OpenOptions } from '../session/index.ts'
import type { ModelOverrides } from './models.ts'
import type { Upstreams } from './routes.ts'

/** The options of a gateway. */
export interface GatewayOptions {
  /** The options of its sessions. */
  open: Omit<OpenOptions, 'sessionId' | 'cwd' | 'layout' | 'model' | 'shape'>
  /** Default 127.0.0.1. Any other address than loopback needs a token. */
  host?: string
  /** Default 0: a free one. */
  port?: number
  /** With it, the path of every request must begin with it. */
  token?: string
  /** The secret of our own tools. Default: a new one. */
  secret?: string
  upstreams?: Partial<Upstreams>
  /** The program that the gateway was started for, if there is one. */
  program?: HostName
  /** The working directory of agents that don't say where they work. By default it is not known, and paths are those of the process. */
  cwd?: string
  /** The folder in which to remember how each conversation went out last; default: only in memory. */
  formsPath?: string
  /** The file for the bills of calls; default: none. */
  billsPath?: string
  /** The share of sessions that go out unedited, from 0 to 1, so that the saving can be measured. Default 0. */
  holdout?: number
  /** Overrides of the known facts about models, by name. */
  models?: ModelOverrides
  /** Proxies and certificates. Default: the environment of the process. */
  env?: Environment
  /** The lifetime that requests ask of the provider's cache: by the rule (default), as the client asks, or always the same. */
  cacheLifetime?: LifetimeOption
  /** Called once for each kind of trouble with a sentence for the user. */
  onWarning?: (sentence: string) => void
  /** For tests: the limit of the projection in milliseconds. */
  limitMs?: number
  /** For tests: the time in milliseconds after which an unused connection to an upstream is closed. */
  restMs?: number
  /** For tests: which addresses are Anthropic's own API. */
  isAnthropic?: (target: URL) => boolean
  now?: () => number
}
