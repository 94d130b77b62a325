/** The page: who may see it, what it shows, and what a person can do on it. */
import { connect } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, ask, gatewayTo, long, looping } from './support.ts'
import type { Got } from './support.ts'

afterEach(cleanUp)

const own = (gateway: Gateway): { url: URL; bearer: Record<string, string> } => ({
  url: new URL(gateway.pageUrl as string),
  bearer: { authorization: `Bearer ${gateway.page.key}` },
})

/** A request to the page's server. */
function to(gateway: Gateway, path: string, body: object, headers: Record<string, string> = {}): Promise<Got> {
  const { url, bearer } = own(gateway)
  return ask(`${url.origin}/_context${path}`, { headers: { ...bearer, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })
}

async function said(gateway: Gateway, action: string, id: string): Promise<string> {
  return (JSON.parse((await to(gateway, '/act', { session: 'claude-code:session-1', action, id })).text) as { said: string }).said
}

/** Returns the page's data once it has all. */
async function shown(gateway: Gateway, test: (view: any) => boolean = () => true): Promise<any> {
  const { url, bearer } = own(gateway)
  const socket = connect(Number(url.port), '127.0.0.1')
  onCleanUp(() => void socket.destroy())
  socket.write(`GET /_context/events?session= HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: ${bearer['authorization']}\r\n\r\n`)
  const view: any = { regions: {}, lists: {} }
  let text = ''
  for (;;) {
    const [data] = (await once(socket, 'data')) as [Buffer]
    text += data.toString()
    const events = text.split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      const json = /^(?:[\da-f]+\r\n)?data: (.*)$/m.exec(event.replaceAll('\r\n', '\n'))?.[1]
      if (json === undefined) continue
      const news = JSON.parse(json)
      Object.assign(view.regions, news.regions)
      for (const [name, list] of Object.entries<any>(news.lists)) {
        const before = view.lists[name]?.rows ?? {}
        view.lists[name] = { order: list.order, rows: { ...before, ...list.rows } }
      }
      if (test(view)) return view
    }
  }
}

describe('who may see the page', () => {
  test.each(['/', '/?key=', '/?key=wrong', '/events', '/page.js', '/text'])('without the key %s is refused', async (path) => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const got = await ask(`${own(gateway).url.origin}/_context${path}`, { method: 'GET' })
    expect(got.status).toBe(401)
    expect(got.text).not.toContain('<')
  })

  test('the secret of the tools is not a key, and the key not a secret', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    expect((await ask(`${own(gateway).url.origin}/_context/?key=${gateway.secret}`, { method: 'GET' })).status).toBe(401)
    expect((await ask(gateway.mcpUrl, { headers: own(gateway).bearer, body: '{}' })).status).toBe(401)
  })

  test.each([
    [{ host: 'evil.example' }, 421],
    [{ host: 'evil.example:80' }, 421],
    [{ host: '127.0.0.1' }, 403],
    [{ host: 'localhost:1' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
  ] as [Record<string, string>, number][])('%j gets nothing, with the key', async (headers, status) => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const { url, bearer } = own(gateway)
    for (const path of [`/?key=${gateway.page.key}`, '/events']) {
      const got = await ask(`${url.origin}/_context${path}`, { method: 'GET', headers: { ...bearer, ...headers } })
      expect([path, got.status]).toEqual([path, status])
    }
  })

  test('a name that leads here (DNS rebinding) is refused, and localhost is not', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const { url } = own(gateway)
    const page = (host: string): Promise<Got> => ask(url.href, { method: 'GET', headers: { host } })
    expect((await page(`rebound.example:${url.port}`)).status).toBe(421)
    expect((await page(`127.0.0.1.evil.example:${url.port}`)).status).toBe(421)
    for (const host of [url.host, `localhost:${url.port}`]) expect((await page(host)).status).toBe(200)
  })

  test('the page may load nothing from elsewhere', async () => {
    const { gateway } = await gatewayTo('http://127.0.0.1:1')
    const { headers, text } = await ask(own(gateway).url.href, { method: 'GET' })
    const nonce = /script nonce="([^"]+)"/.exec(text)?.[1]
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    )
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
    expect(text).not.toMatch(/https?:\/\//)
    expect(text).not.toContain(gateway.page.key)
  })
})

describe('the page', () => {
  test('sessions, calls, the saving, rolls, references, and later messages', async () => {
    const server = await startModelServer(() => 'ok')
    const { gateway } = await gatewayTo(server.url, { cwd: process.cwd() })
    expect((await shown(gateway)).regions.head).toContain('Waiting for the first request')
    const loop = new AnthropicLoop(gateway)
    await loop.prompt('find <b>the</b> bug')
    for (let n = 0; n < 30; n += 1) await loop.call('Bash', { command: `cat n${n} <i>` }, long(`n${n}`))
    const { regions, lists } = await shown(gateway)
    expect(lists.sessions.order).toEqual(['claude-code:session-1'])
    expect(lists.sessions.rows['claude-code:session-1']).toContain('find &#60;b&#62;the&#60;/b&#62; bug')
    // Agent, age, the user's words, the folder's name and the name that commands take.
    expect(lists.sessions.rows['claude-code:session-1']).toMatch(
      /<b>Claude Code<\/b> <time data-at="\d+">[\d:]+<\/time><span>find [^]* bug<\/span><small>[\w-]+, session, 31 calls/,
    )
    expect(regions.head).toContain('<code title="claude-code:session-1">claude-code:session</code>')
    expect(lists.calls.order).toEqual(Array.from({ length: 31 }, (_, n) => String(31 - n)))
    const { rolls, calls } = gateway.ledger.sessions[0]!
    expect(rolls.length).toBeGreaterThan(0)
    expect(regions.rolls.split('<li>').length - 1).toBe(rolls.length)
    expect(regions.figures).toMatch(/\d+\u00A0%<\/b><span>saved, estimated/)
    expect(regions.window).toContain('references')
    expect(regions.seen).toMatch(/The last request has [\d.]+k tokens in place of the agent's [\d.]+k/)
    const changes = Object.values<string>(lists.changes.rows)
    expect(changes.filter((row) => row.startsWith('<summary><b>replaced</b> output of bash cat n')).length).toBeGreaterThan(3)
    expect(changes.join('')).not.toContain('<i>')
    const rows = Object.values<string>(lists.outputs.rows)
    expect(rows.filter((row) => row.includes('>reference<')).length).toBeGreaterThan(3)
    expect(rows.join('')).not.toContain('<i>')
    expect(calls.filter(({ broken }) => broken !== undefined).map(({ broken }) => broken?.by)).toEqual(rolls.map(() => 'roll'))
    const later = shown(gateway, ({ lists }) => lists.calls?.order.length === 32)
    await loop.call('Bash', { command: 'cat later' }, long('later'))
    expect((await later).lists.outputs.rows).toHaveProperty('toolu_session-1_31')
  })

  test('names the host if it broke the cache by a change to earlier messages', async () => {
    const { gateway, loop } = await looping()
    loop.tools = loop.tools.slice(0, 3)
    for (let n = 0; n < 10; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    loop.messages[6].content[0].content = 'cleared by the agent'
    await loop.call('Bash', { command: 'cat x' }, long('x'))
    await loop.call('Bash', { command: 'cat y' }, long('y'))
    const { calls } = gateway.ledger.sessions[0]!
    const broken = calls.flatMap((call) => (call.broken === undefined ? [] : [call.broken]))
    expect(broken.map(({ by }) => by)).toEqual(['host'])
    expect(broken[0]?.causes).toEqual([expect.stringMatching(/changed or removed message \d+ of its \d+ messages/)])
  })

  test('a conversation that continues another one has no receipt for removals in that one', async () => {
    const { gateway, loop } = await looping()
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const siblings = ['a', 'b'].map((name, number) => {
      const one = new AnthropicLoop(gateway)
      one.messages.push(...loop.messages, { role: 'user', content: [{ type: 'text', text: `sibling ${name}` }] })
      return Object.assign(one, { calls: 100 * (number + 1) })
    })
    const whole = (): number => siblings.reduce((sum, { messages }) => sum + JSON.stringify(messages).length, 0) / 4
    for (let n = 0; n < 6; n += 1) for (const one of siblings) await one.call('Bash', { command: `cat m${n}` }, long(`m${n}`))
    const receipts = gateway.ledger.sessions.flatMap(({ rolls }) => rolls)
    expect(gateway.ledger.sessions.length).toBe(2)
    expect(receipts.reduce((sum, { removedTokens }) => sum + removedTokens, 0)).toBeLessThan(whole() - JSON.stringify(loop.messages).length / 4)
  })

  test('a session that is held out has its figures', async () => {
    const server = await startModelServer(() => 'ok')
    const { gateway } = await gatewayTo(server.url, { holdout: 1 })
    await new AnthropicLoop(gateway).call('Bash', { command: 'x' }, long('x'))
    const { regions } = await shown(gateway)
    expect(regions.head).toContain('held out')
  })
})

describe('actions of a person', () => {
  test('pin, drop, bring back, open, search', async () => {
    const { server, gateway, loop } = await looping()
    for (let n = 0; n < 34; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    const { lists } = await shown(gateway)
    type Lists = typeof lists
    const formed = (form: string, { outputs }: Lists): string => outputs.order.find((id: string) => outputs.rows[id].includes(`>${form}`))
    const gone = formed('reference', lists)
    const name = `n${Number(gone.split('_').at(-1)) - 1}`

    expect(await said(gateway, 'back', gone)).toBe(`cat ${name} goes to the model with the next request.`)
    expect(await said(gateway, 'back', gone)).toBe(`cat ${name} has been brought back already.`)
    await loop.call('Bash', { command: 'cat more' }, 'short')
    const after = server.requests.at(-1)!
    expect(after.messages.at(-1)!.json).toContain(JSON.stringify(long(name)).slice(1, -1))
    await loop.call('Bash', { command: 'cat again' }, 'short')
    expect(
      server.requests
        .at(-1)!
        .messages.map(({ json }) => json)
        .slice(0, after.messages.length),
    ).toEqual(after.messages.map(({ json }) => json))

    const whole = formed('in full', (await shown(gateway)).lists)
    expect(await said(gateway, 'pin', whole)).toMatch(/is pinned: it does not collapse\.$/)
    expect((await shown(gateway)).lists.outputs.rows[whole]).toContain('pinned')
    expect(await said(gateway, 'drop', whole)).toMatch(/stays as long as it is pinned\.$/)
    expect(await said(gateway, 'unpin', whole)).toMatch(/no longer pinned\.$/)
    expect(await said(gateway, 'drop', whole)).toMatch(/is dropped: it collapses at the next roll\.$/)
    expect(await said(gateway, 'pin', 'nothing')).toBe('The session has no such output.')

    const session = 'claude-code:session-1'
    const opened = JSON.parse((await to(gateway, '/text', { session, id: gone })).text) as { name: string; texts: { label: string; text: string }[] }
    expect(opened.texts.map(({ label }) => label)).toEqual(['in full, as recorded', 'as the model sees it'])
    expect(opened.texts[0]!.text).toBe(long(name))
    expect(opened.texts[1]!.text).toMatch(/^toolcall_ref id=/)
    const { html } = JSON.parse((await to(gateway, '/search', { session, query: 'n7 line 9' })).text) as { html: string }
    expect(html).toContain('n7 line')
    expect((await to(gateway, '/act', { session: 'none', action: 'pin', id: gone })).text).toContain('No conversation of this session is open.')
    expect((await to(gateway, '/act', { session, action: 'format', id: gone })).status).toBe(400)
    expect((await to(gateway, '/nothing', { session })).status).toBe(404)
  })
})
