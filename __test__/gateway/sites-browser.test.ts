/** Sites in a real browser, beside a gateway without a token: what they can make it send gets nothing. */
import { createServer } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { listening } from '../../rig/listening.ts'
import { Browser, CHROMIUM } from './browser.ts'
import { ask, gatewayTo } from './support.ts'

afterEach(cleanUp)

/** A site, and a provider: everything on it works in a browser that shows it, also a service worker with the scope `/`. */
async function site(): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] as string
    asked.push(path)
    const type = path.endsWith('.js')
      ? 'text/javascript'
      : path.endsWith('.svg')
        ? 'image/svg+xml'
        : path.endsWith('.events')
          ? 'text/event-stream'
          : path.endsWith('.css')
            ? 'text/css'
            : 'text/html'
    const open = {
      'access-control-allow-origin': '*',
      'access-control-allow-headers': '*',
      'service-worker-allowed': '/',
      'set-cookie': 'planted=1; Path=/',
      'cross-origin-resource-policy': 'cross-origin',
    }
    response.writeHead(200, { 'content-type': type, ...open })
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
    response.end(
      type === 'text/html'
        ? '<title>site</title><link rel="icon" href="data:,"><body>site</body>'
        : type === 'image/svg+xml'
          ? svg
          : type === 'text/event-stream'
            ? 'data: 1\n\n'
            : type === 'text/css'
              ? ''
              : 'self.ran = true',
    )
  })
  return { port: Number(new URL(await listening(server)).port), asked }
}

/** Everything that a document can ask an address for. Each entry is a promise of true if something came. */
const ATTEMPTS: [name: string, attempt: (address: string) => string][] = [
  ['fetch', (to) => `fetch('${to}/a').then(() => true)`],
  ['fetch without CORS', (to) => `fetch('${to}/a', { mode: 'no-cors' }).then(() => false)`],
  ['fetch with a body', (to) => `fetch('${to}/a', { method: 'POST', mode: 'no-cors', body: '{}' }).then(() => false)`],
  ['fetch with a preflight', (to) => `fetch('${to}/a', { method: 'PUT', headers: { 'x-api-key': 'k' }, body: '{}' }).then(() => true)`],
  [
    'XMLHttpRequest',
    (to) =>
      `new Promise((done) => { const x = new XMLHttpRequest(); x.onload = () => done(true); x.onerror = () => done(false); x.open('GET', '${to}/a'); x.send() })`,
  ],
  ['beacon', (to) => `(navigator.sendBeacon('${to}/a', 'x'), false)`],
  ['image', (to) => `new Promise((done) => { const i = new Image(); i.onload = () => done(true); i.onerror = () => done(false); i.src = '${to}/a.svg' })`],
  [
    'script',
    (to) =>
      `new Promise((done) => { const s = document.createElement('script'); s.onload = () => done(true); s.onerror = () => done(false); s.src = '${to}/a.js'; document.body.append(s) })`,
  ],
  ['module', (to) => `import('${to}/m.js').then(() => true)`],
  [
    'style',
    (to) =>
      `new Promise((done) => { const s = document.createElement('link'); s.rel = 'stylesheet'; s.onload = () => done(true); s.onerror = () => done(false); s.href = '${to}/a.css'; document.body.append(s) })`,
  ],
  [
    'worker',
    (to) =>
      `new Promise((done) => { const w = new Worker(URL.createObjectURL(new Blob(["try { importScripts('${to}/w.js'); postMessage(self.ran === true) } catch { postMessage(false) }"]))); w.onmessage = ({ data }) => done(data); w.onerror = () => done(false) })`,
  ],
  [
    'frame',
    (to) =>
      `new Promise((done) => { const f = document.createElement('iframe'); f.onload = () => done(false); f.src = '${to}/frame.html'; document.body.append(f) })`,
  ],
  [
    'events',
    (to) =>
      `new Promise((done) => { const e = new EventSource('${to}/a.events'); e.onmessage = () => done(true); e.onerror = () => { e.close(); done(false) } })`,
  ],
  [
    'WebSocket',
    (to) => `new Promise((done) => { const s = new WebSocket('${to.replace(/^http/, 'ws')}/a'); s.onopen = () => done(true); s.onerror = () => done(false) })`,
  ],
  [
    'object',
    (to) =>
      `new Promise((done) => { const o = document.createElement('object'); o.onload = () => done(false); o.onerror = () => done(false); o.data = '${to}/object.html'; document.body.append(o) })`,
  ],
]

/** Ways to send a window to an address. */
const GOES: ((address: string) => string)[] = [
  (address) => `location.href = '${address}'`,
  ...['GET', 'POST'].map(
    (method) => (address: string) =>
      `(() => { const form = document.createElement('form'); form.method = '${method}'; form.action = '${address}'; form.enctype = 'text/plain'; document.documentElement.append(form); form.submit() })()`,
  ),
]

/** Addresses that would lead the gateway to the site, as an upstream. */
function through(gateway: Gateway, port: number): string[] {
  const { origin } = new URL(gateway.url)
  return [`${origin}/http://127.0.0.1:${port}/s`, `${origin}/anthropic/s`, `${origin}/v1/s`]
}

describe.skipIf(CHROMIUM === undefined)('in Chromium', () => {
  test('a site gets nothing through the gateway, by whatever it tries', async () => {
    const { port, asked } = await site()
    const { gateway } = await gatewayTo(`http://127.0.0.1:${port}`)
    const browser = await Browser.start()
    // Another site, and another port of the same one.
    for (const name of ['localhost', '127.0.0.1']) {
      await browser.open(`http://${name}:${port}/start.html`)
      // The attempts are real ones: at the site's own address, each arrives.
      for (const [what, attempt] of ATTEMPTS) {
        const before = asked.length
        await browser.value(`Promise.resolve(${attempt(`http://${name}:${port}/control`)}).catch(() => false)`)
        if (what !== 'WebSocket' && what !== 'beacon') expect([what, asked.length > before]).toEqual([what, true])
      }
      asked.length = 0
      for (const address of through(gateway, port)) {
        for (const [what, attempt] of ATTEMPTS)
          expect([what, await browser.value(`Promise.resolve(${attempt(address)}).catch(() => false)`)]).toEqual([what, false])
      }
      // A request that is served after all of these; a beacon does not say when it has arrived.
      await ask(`${gateway.url}/v1/last`, { method: 'GET' })
      expect(asked.filter((path) => !path.startsWith('/control'))).toEqual(['/v1/last'])
      asked.length = 0
    }
  })

  test('a site that sends the browser to its own address behind the gateway is not shown, and plants nothing', async () => {
    const { port, asked } = await site()
    const { gateway } = await gatewayTo(`http://127.0.0.1:${port}`)
    const { origin } = new URL(gateway.url)
    const page = new URL(gateway.pageUrl as string)
    const browser = await Browser.start()
    for (const address of [...through(gateway, port), `${page.origin}/http://127.0.0.1:${port}/s`, `${page.origin}/_context/http://127.0.0.1:${port}/s`]) {
      for (const go of GOES) {
        await browser.open(`http://localhost:${port}/start.html`)
        asked.length = 0
        const loaded = browser.loaded()
        await browser.value(`void (${go(`${address}/x.html`)})`)
        await loaded
        expect(await browser.value('location.href')).toMatch(/^http:.*\/s\/x\.html\??$/)
        expect(await browser.value('document.title')).not.toBe('site')
      }
      expect(await browser.value(`navigator.serviceWorker.register('${address}/sw.js', { scope: '/' }).then(() => 'registered', () => 'refused')`)).toBe(
        'refused',
      )
      expect(asked).toEqual([])
    }
    await browser.open(gateway.pageUrl as string)
    await browser.until(`document.getElementById('live').textContent === 'live'`)
    expect(await browser.value('navigator.serviceWorker.getRegistrations().then((all) => all.length)')).toBe(0)
    // The site's own answers, which came from another port of this machine, may set cookies; those of the gateway don't.
    expect(await browser.value(`fetch('${origin}/http://127.0.0.1:${port}/s', { mode: 'no-cors' }).then(() => 'read', () => 'refused')`)).toBe('refused')
    expect(asked).toEqual([])
  })

  test('a name that leads here later (DNS rebinding) reads nothing', async () => {
    const { port, asked } = await site()
    const { gateway } = await gatewayTo(`http://127.0.0.1:${port}`)
    const { port: own } = new URL(gateway.url)
    const page = new URL(gateway.pageUrl as string)
    const browser = await Browser.start('--host-resolver-rules=MAP rebound.example 127.0.0.1')
    for (const address of [`http://rebound.example:${own}`, `http://rebound.example:${page.port}`]) {
      await browser.open(`${address}/v1/x.html`)
      expect(await browser.value('document.title')).not.toBe('site')
      for (const path of ['/', '/v1/models', `/http://127.0.0.1:${port}/s`, '/_context/', `/_context/?key=${gateway.page.key}`, '/_context/events']) {
        const read = `fetch('${address}${path}', { headers: { authorization: 'Bearer ${gateway.page.key}' } }).then(({ status }) => status, () => 0)`
        expect([path, [0, 421].includes(await browser.value<number>(read))]).toEqual([path, true])
      }
    }
    expect(asked).toEqual([])
  })
})
