/**
 * The gateway beside the same client without it, and behind a proxy that passes everything on, against a server on this machine that
 * answers at once: the arrival of the first byte at 300 KB in each format, at 2 MB, and with 50 conversations at a time; the delay of each
 * piece of an answer; and the memory left after 1,000 requests, every tenth of them aborted. The gateway runs as its users start it, in
 * its own process; its processor time does not depend on other work here.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, percentile, print, rounds } from '../figure.ts'
import { Alone } from './alone.ts'
import { FORMATS, formatAt } from './formats.ts'
import { firstByte, Loop, PIECES, pieces } from './loop.ts'
import type { Server } from './loop.ts'

const server = createServer((incoming, response) => {
  incoming.resume().on('end', () => {
    const { first, words, last } = formatAt(incoming.url ?? '').answer
    const send = (line: object): string => `data: ${JSON.stringify(line)}\n\n`
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(send(first))
    let left = Number(incoming.headers[PIECES] ?? 0)
    const next = (): void => {
      if (left === 0) return void response.end(send(last))
      left -= 1
      response.write(send({ ...words('some words'), stamp: performance.now() }))
      setTimeout(next, 5)
    }
    setTimeout(next, 5)
  })
}).listen(0, '127.0.0.1')
server.keepAliveTimeout = 600_000
await once(server, 'listening')
const plain: Server = { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, kind: 'plain' }
const root = mkdtempSync(join(tmpdir(), 'context-bench-'))
const gateway = await Alone.start(join(root, 'context.db'), plain.origin)
const through: Server = { origin: gateway.origin, kind: 'gateway' }
const proxy = await Alone.proxy(plain.origin)
/** The least that a server between client and provider adds. */
const passing: Server = { origin: proxy.origin, kind: 'plain' }

/** At 300 KB in each format, at 2 MB in one, and the number of requests. */
const SIZES = [...FORMATS.map((format) => [300, format, 200] as const), [2000, FORMATS[0], 60] as const]

/** Requests of one conversation: a longer one would grow far beyond its size. */
const EACH = 20

/**
 * The time between an answer and the next request, in milliseconds: less than any model and tool take, and enough for what the gateway
 * does meanwhile, as with them.
 */
const MEANWHILE_MS = 30

for (const [kilobytes, format, count] of SIZES) {
  const direct: number[] = []
  const added: number[] = []
  const least: number[] = []
  let processorMs = 0
  // In the first conversation, a program that has just started compiles its code.
  for (let conversation = 0; conversation <= Math.ceil(rounds(count) / EACH); conversation += 1) {
    const loop = new Loop(`size-${kilobytes}-${conversation}`, format)
    while (JSON.stringify(loop.messages).length < kilobytes * 1000) loop.add()
    for (const one of [plain, passing, through]) await firstByte(one, loop)
    const busy = gateway.processorMs
    for (let round = 0; round < EACH; round += 1) {
      loop.add()
      await new Promise((resolve) => setTimeout(resolve, MEANWHILE_MS))
      const [alone, passed, behind] = [await firstByte(plain, loop), await firstByte(passing, loop), await firstByte(through, loop)]
      if (conversation === 0) continue
      direct.push(alone)
      least.push(passed - alone)
      added.push(behind - alone)
    }
    if (conversation > 0) processorMs += gateway.processorMs - busy
  }
  const limit = { peer: 'the limit', beside: kilobytes === 300 ? 10 : 40, unit: 'ms', good: 1 }
  const what = `first byte of an answer at ${kilobytes} KB in the format ${format.name}, added by the gateway`
  for (const [share, name] of [
    [0.5, 'median'],
    [0.95, 'p95'],
  ] as const) {
    const note = `${percentile(least, share).toFixed(1)} ms by a proxy that looks at nothing; ${percentile(direct, share).toFixed(1)} ms without either`
    print({ figure: 'gateway', what: `${what} (${name} of ${added.length})`, ours: percentile(added, share), ...limit, note })
  }
  const each = processorMs / added.length
  print({ figure: 'gateway', what: `processor time of the gateway for a request of ${kilobytes} KB in the format ${format.name}`, ours: each, ...limit })
}
await proxy.close()

const talk = new Loop('pieces')
talk.add()
const ways = { plain: [] as number[], gateway: [] as number[] }
for (let round = 0; round < rounds(5); round += 1) {
  talk.add()
  for (const one of [plain, through]) ways[one.kind].push(...(await pieces(one, talk, rounds(100))))
}
for (const [share, name] of [
  [0.5, 'median'],
  [0.95, 'p95'],
] as const) {
  const [behind, direct] = [percentile(ways.gateway, share), percentile(ways.plain, share)]
  const note = `${behind.toFixed(2)} ms beside ${direct.toFixed(2)} without`
  print({
    figure: 'gateway',
    what: `way of one piece of a streamed answer, added by the gateway (${name} of ${ways.gateway.length})`,
    ours: behind - direct,
    peer: 'the limit',
    beside: 1,
    unit: 'ms',
    good: 1,
    note,
  })
}

const many = Array.from({ length: 50 }, (_, n) => new Loop(`many-${n}`))
const started = performance.now()
const all = await Promise.all(
  many.map(async (loop) => {
    const times: number[] = []
    for (let n = 0; n < rounds(20); n += 1) {
      loop.add()
      times.push(await firstByte(through, loop))
    }
    return times
  }),
)
const inAll = all.flat()
print({
  figure: 'gateway',
  what: `first byte with 50 conversations at a time, ${inAll.length} requests in ${((performance.now() - started) / 1000).toFixed(1)} s (p95)`,
  ours: percentile(inAll, 0.95),
  peer: 'their median',
  beside: median(inAll),
  unit: 'ms',
})

const loop = new Loop('aborted')
for (let n = 0; n < 100; n += 1) loop.add()
await firstByte(through, loop)
const before = gateway.memory
for (let n = 0; n < rounds(1000); n += 1) await firstByte(through, loop, n % 10 === 9)
const connections = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
print({
  figure: 'gateway',
  what: 'memory of the gateway after 1,000 more requests, every tenth aborted',
  ours: gateway.memory / 1e6,
  peer: 'before',
  beside: before / 1e6,
  unit: 'MB',
  note: `${connections} connections upstream`,
})

await gateway.close()
server.closeAllConnections()
server.close()
rmSync(root, { recursive: true, force: true })
