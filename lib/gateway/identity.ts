/** The sender of a request: the host, and its own names for the session and the agent in it. */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { HostName } from '../core/index.ts'
import { hostNamed, isFields, sessionOf, textOf } from '../core/index.ts'
import type { ModelRequest } from './request.ts'

/** The sender of a request. */
export interface Sender {
  host: HostName
  /** The session's ID in our store, without a number for later conversations; undefined if the host names none. */
  session: string | undefined
  /** The session of the agent that has started this one, if this one is a subagent. */
  parent: string | undefined
  /** The host has asked for a window of a million tokens. */
  isLong?: true
  /** The host is logged in with a plan at a flat rate, so that its calls cost no dollars of their own. */
  isPlan?: true
}

/** The part of a request that tells of its sender. */
type Told = Pick<ModelRequest, 'body' | 'envelope'>

/** Reads the sender from headers and body. `assumed` is the program that the gateway was started for. */
export function senderOf(headers: IncomingHttpHeaders, request: Told, assumed?: HostName): Sender {
  const own = namedSender(headers, request, assumed)
  return hasPlan(headers) || request.envelope !== undefined ? { ...own, isPlan: true } : own
}

/** True if the credentials are those of a plan: Claude's login (OAuth), or an account of ChatGPT. A key pays for each call. Google's login has its own address. */
function hasPlan(headers: IncomingHttpHeaders): boolean {
  const isLogin = /(?:^|[\s,])oauth-\d/.test(textOf(headers['anthropic-beta'])) || textOf(headers.authorization).startsWith('Bearer sk-ant-oat')
  return (isLogin && textOf(headers['x-api-key']) === '') || textOf(headers['chatgpt-account-id']) !== ''
}

function namedSender(headers: IncomingHttpHeaders, request: Told, assumed?: HostName): Sender {
  const header = (name: string): string => textOf(headers[name])
  const named = [header('user-agent'), header('originator'), header('x-title')].map(hostNamed).find((one) => one !== 'agent')
  const host = header('x-claude-code-session-id') === '' ? (named ?? assumed ?? 'agent') : 'claude-code'
  if (host === 'claude-code') {
    const session = header('x-claude-code-session-id') || sessionInMetadata(request)
    const agent = header('x-claude-code-agent-id')
    const above = header('x-claude-code-parent-agent-id')
    const isLong = /\bcontext-1m\b/.test(header('anthropic-beta'))
    return { ...sender(host, session, agent, agent === '' ? undefined : above), ...(isLong && { isLong }) }
  }
  if (host === 'codex') {
    const thread = header('thread-id') || header('session-id') || header('session_id') || header('conversation_id') || textOf(request.body['prompt_cache_key'])
    const parent = header('x-codex-parent-thread-id')
    const own = sender(host, thread, '', undefined)
    return parent === '' || parent === thread ? own : { ...own, parent: sessionOf(host, clean(parent)) }
  }
  const affinity = header('x-session-affinity') || header('x-opencode-session') || header('x-session-id') || header('agent-session-id')
  const own = sender(host, affinity || textOf(request.body['session_id']) || textOf(request.body['prompt_cache_key']), '', undefined)
  const parent = header('x-parent-session-id')
  return parent === '' ? own : { ...own, parent: sessionOf(host, clean(parent)) }
}

function sender(host: HostName, session: string, agent: string, above: string | undefined): Sender {
  if (session === '') return { host, session: undefined, parent: undefined }
  const main = sessionOf(host, clean(session))
  const parent = above === undefined ? undefined : above === '' ? main : `${main}:${clean(above)}`
  return { host, session: agent === '' ? main : `${main}:${clean(agent)}`, parent }
}

/** Claude Code also has its session's ID in the body. */
function sessionInMetadata({ body }: Told): string {
  const { metadata } = body
  try {
    const user: unknown = JSON.parse(isFields(metadata) ? textOf(metadata['user_id']) : '')
    return isFields(user) ? textOf(user['session_id']) : ''
  } catch {
    return ''
  }
}

/** An ID from outside, as part of ours: short, and without anything that means something in it. */
function clean(id: string): string {
  return /^[\w.-]{1,128}$/.test(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 32)
}
