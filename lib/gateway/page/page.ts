/**
 * The page of a gateway: what goes through it, live. It is for the user at this machine: only over loopback, under the
 * gateway's own name, for pages of the same origin, and with the key that the terminal shows. The page loads nothing from
 * elsewhere and sends no other requests.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isFields, sentenceOf, textOf } from '../../core/index.ts'
import { readBody } from '../body.ts'
import type { Conversation } from '../conversation.ts'
import type { Conversations } from '../conversations.ts'
import type { BillLedger } from '../ledger.ts'
import { COMMON, refuse } from '../refusal.ts'
import { isSame } from '../routes.ts'
import { isLoopback } from '../upstream.ts'
import { act, open, searchIn } from './act.ts'
import type { Action } from './act.ts'
import { draw } from './draw.ts'
import type { PageView } from './draw.ts'
import { lookAt } from './look.ts'
import { shell } from './shell.ts'

/** The parts of a gateway that the page shows and acts on. */
export interface PageShown {
  ledger: BillLedger
  conversations: Conversations
}

/** The least time between two updates, in milliseconds. */
const PAUSE_MS = 250

/** The interval of the lines that keep the connection open, in milliseconds. */
const BEAT_MS = 15_000

/** The largest body of a request to the page, in bytes. */
const LARGEST_ASKED = 64 * 1024

/** Lists whose rows a page has, and regions, as they were last sent. */
interface Sent {
  regions: Map<string, string>
  rows: Map<string, Map<string, string>>
}

/** The page, for all browsers that have it open. */
export class Page {
  /** The key that a user needs to see it. */
  readonly key = randomBytes(18).toString('base64url')
  readonly #shown: PageShown
  /** Each draws anew for one browser. */
  readonly #watchers = new Set<() => void>()
  readonly #stop: () => void

  constructor(shown: PageShown) {
    this.#shown = shown
    this.#stop = shown.ledger.listen(() => this.#changed())
  }

  /** Answers a request. `path` is what follows our own prefix, `origin` the gateway's own with the name that was asked for. */
  async serve(request: IncomingMessage, response: ServerResponse, path: string, origin: string): Promise<void> {
    const { pathname, searchParams } = new URL(`http://page${path}`)
    const why = refusalOf(request, origin)
    if (why !== undefined) return refuse(request.headers, response, 403, why)
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    const isShell = pathname === '/' && request.method === 'GET'
    const given = bearer ?? (isShell ? (searchParams.get('key') ?? '') : '')
    if (!isSame(given, this.key))
      return refuse(request.headers, response, 401, 'this needs the key that the terminal shows; each start of the gateway makes a new one')
    if (isShell) return this.#shell(response)
    if (pathname === '/events' && request.method === 'GET') return this.#watch(response, searchParams.get('session') ?? '')
    if (request.method !== 'POST') return refuse(request.headers, response, 404, `there is no ${pathname}`)
    await this.#ask(request, response, pathname)
  }

  /** Ends all updates. */
  close(): void {
    this.#stop()
    this.#watchers.clear()
  }

  #shell(response: ServerResponse): void {
    const nonce = randomBytes(16).toString('base64')
    const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
    response.writeHead(200, { ...COMMON, 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy })
    response.end(shell(nonce))
  }

  /** Sends what a session looks like, now and whenever it changes; the latest used one if none is named. */
  #watch(response: ServerResponse, session: string): void {
    response.writeHead(200, { ...COMMON, 'content-type': 'text/event-stream' })
    const sent: Sent = { regions: new Map(), rows: new Map() }
    let [isDrawing, isOld] = [false, true]
    const update = async (): Promise<void> => {
      if (isDrawing || response.writableNeedDrain || response.destroyed) return
      isDrawing = true
      try {
        while (isOld && !response.destroyed) {
          isOld = false
          const news = newsOf(await this.#view(session), sent)
          if (news !== undefined) response.write(`data: ${JSON.stringify(news)}\n\n`)
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref())
        }
      } finally {
        isDrawing = false
      }
    }
    const changed = (): void => {
      isOld = true
      void update()
    }
    const beat = setInterval(() => response.write(': still here\n\n'), BEAT_MS).unref()
    this.#watchers.add(changed)
    response.on('drain', changed)
    response.on('close', () => {
      clearInterval(beat)
      this.#watchers.delete(changed)
    })
    changed()
  }

  async #view(session: string): Promise<PageView> {
    const { sessions } = this.#shown.ledger
    const selected = sessions.find((one) => one.session === session) ?? sessions.at(-1)
    const conversation = selected === undefined ? undefined : this.#conversation(selected.session)
    // A session that can't be opened now still has its figures.
    const look = conversation === undefined ? undefined : await lookAt(conversation).catch(() => undefined)
    return draw(sessions, selected, look)
  }

  async #ask(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { bytes, isWhole } = await readBody(request, LARGEST_ASKED)
    const asked = isWhole ? parsed(bytes.toString('utf8')) : undefined
    if (asked === undefined) return refuse(request.headers, response, 400, 'the body is not a JSON object, or too large')
    const conversation = this.#conversation(textOf(asked['session']))
    if (conversation === undefined) return answer(response, { said: 'No conversation of this session is open.' })
    const id = textOf(asked['id'])
    try {
      switch (path) {
        case '/act': {
          const action = textOf(asked['action'])
          if (!isAction(action)) return refuse(request.headers, response, 400, `there is no action "${action}"`)
          const said = await act(conversation, action, id)
          this.#changed()
          return answer(response, { said })
        }
        case '/text':
          return answer(response, await open(conversation, id))
        case '/search':
          return answer(response, { html: await searchIn(conversation, textOf(asked['query'])) })
        default:
          return refuse(request.headers, response, 404, `there is no ${path}`)
      }
    } catch (error) {
      answer(response, { said: `That was not possible: ${sentenceOf(error)}` })
    }
  }

  #conversation(session: string): Conversation | undefined {
    return this.#shown.conversations.all.findLast(({ id }) => id === session)
  }

  #changed(): void {
    for (const changed of this.#watchers) changed()
  }
}

/** Why a request is refused that may not come from the page or its own address; undefined if it may. */
function refusalOf({ headers, socket }: IncomingMessage, own: string): string | undefined {
  const { host, origin } = headers
  const from = (socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  if (!isLoopback(from)) return 'the page is only for this machine'
  if (host === undefined || `http://${host}` !== own) return 'the page has another address'
  if (origin !== undefined && origin !== own) return 'this is not for pages of another origin'
  const site = headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none' ? undefined : 'this is not for pages of another origin'
}

/** Returns what of a view a browser does not have yet; undefined if it has all. */
function newsOf({ regions, lists }: PageView, sent: Sent): object | undefined {
  const changed = Object.entries(regions).filter(([id, html]) => sent.regions.get(id) !== html)
  const changedLists = Object.entries(lists).flatMap(([id, rows]) => {
    const before = sent.rows.get(id) ?? new Map<string, string>()
    const now = new Map(rows)
    sent.rows.set(id, now)
    const fresh = rows.filter(([key, html]) => before.get(key) !== html)
    const isSameOrder = before.size === now.size && [...before.keys()].every((key, at) => rows[at]?.[0] === key)
    return fresh.length === 0 && isSameOrder ? [] : [[id, { order: [...now.keys()], rows: Object.fromEntries(fresh) }] as const]
  })
  for (const [id, html] of changed) sent.regions.set(id, html)
  if (changed.length === 0 && changedLists.length === 0) return undefined
  return { regions: Object.fromEntries(changed), lists: Object.fromEntries(changedLists) }
}

function isAction(text: string): text is Action {
  return ['pin', 'unpin', 'drop', 'back'].includes(text)
}

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

function answer(response: ServerResponse, body: object): void {
  response.writeHead(200, { ...COMMON, 'content-type': 'application/json' }).end(JSON.stringify(body))
}
