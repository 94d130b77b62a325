import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { contentsOf } from '../../lib/inspect/contents.ts'
import { inStore } from '../../lib/native/index.ts'
import { bounded, changedLines } from '../../lib/ui/changed-lines.ts'
import { rebuild } from '../../lib/inspect/request.ts'
import { blocksOf, Calls } from '../../lib/recordings/blocks.ts'
import { isCall } from '../../lib/recordings/recording.ts'
import type { Message } from '../../lib/recordings/recording.ts'
import { SOON, withExtension } from '../../rig/extension.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, startRpc } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { cli, entriesOf, fixture, stepsOf, temporaryFolder } from './support.ts'

afterEach(cleanUp)

/** A store with the session of a recording in it. */
async function storeOf(name: string): Promise<string> {
  const store = join(temporaryFolder(), 'context.db')
  const { code, stderr } = await cli(['replay', fixture(name), '--policies', 'pi-context-manager', '--quiet', '--store', store])
  expect([code, stderr]).toEqual([0, ''])
  return store
}

describe('export, import, doctor', () => {
  test('a store goes through a file into another one, twice, and both are whole', async () => {
    const store = await storeOf('pi-version-3.jsonl')
    const folder = temporaryFolder()
    const file = join(folder, 'all.jsonl')
    const other = join(folder, 'other.db')
    expect(await cli(['export', '--store', store, file])).toMatchObject({ code: 0, stderr: '' })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const [, versions] = /in (\d+) versions/.exec((await cli(['export', '--store', store, '--force', file])).stdout) ?? []
    const first = await cli(['import', '--store', other, file])
    expect(first.stdout).toContain(`${versions} of ${versions} versions were new`)
    const second = await cli(['import', '--store', other, file])
    expect(second.stdout).toContain(`0 of ${versions} versions were new`)
    const found = JSON.parse((await cli(['doctor', '--store', other, '--json'])).stdout)
    expect(found).toMatchObject({ damages: [], sessions: 1, orphans: [], byType: { chat: { objects: 1 } } })
    expect(Object.values(found.byType as Record<string, { versions: number }>).reduce((sum, one) => sum + one.versions, 0)).toBe(Number(versions))
  })

  test('an object that no session knows is an orphan', async () => {
    const path = await storeOf('pi-version-1.jsonl')
    const [before, after] = await inStore({ kind: 'sqlite', path, readOnly: true }, async (store) => [
      await contentsOf(store),
      await contentsOf({
        objects: async () => (await store.objects()).filter(({ type }) => type !== 'session'),
        get: (id) => store.get(id),
      }),
    ])
    expect(before.orphans).toEqual([])
    expect(before.sessions).toBe(1)
    expect(after.orphans.map(({ id }) => id)).toEqual(before.objects.filter(({ type }) => type === 'file' || type === 'toolcall').map(({ id }) => id))
    expect(after.orphans.length).toBeGreaterThan(40)
  })

  test('a file is not written over, and a cut one is refused', async () => {
    const store = await storeOf('pi-version-1.jsonl')
    const file = join(temporaryFolder(), 'all.jsonl')
    await cli(['export', '--store', store, file])
    expect(await cli(['export', '--store', store, file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('exists'),
    })
    truncateSync(file, statSync(file).size - 500)
    const other = join(temporaryFolder(), 'other.db')
    const refused = await cli(['import', '--store', other, file])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('nothing was imported')
    expect(existsSync(other)).toBe(false)
  })

  test('a damaged store is named and fails', async () => {
    const store = await storeOf('pi-version-1.jsonl')
    // The content of a log hides that of the file, and is right.
    expect(existsSync(`${store}-wal`)).toBe(false)
    const bytes = readFileSync(store)
    // Texts are compressed: a byte within each of them is turned.
    const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
    const at = bytes.indexOf(frame)
    expect(at).toBeGreaterThan(0)
    for (let place = at; place > 0; place = bytes.indexOf(frame, place + 1)) bytes[place + 30]! ^= 0x80
    writeFileSync(store, bytes)
    const { code, stdout, stderr } = await cli(['doctor', '--store', store])
    expect(stderr).toBe('')
    expect(code).toBe(1)
    expect(stdout).toMatch(/integrity {2}\d+ damaged/)
  })

  test.each([
    [['export'], 'needs the name of one file to write'],
    [['import', 'a', 'b'], 'needs the name of one file to read'],
    [['import', '/nonexistent/file'], '/nonexistent/file does not exist'],
    [['doctor', '--store', '/nonexistent/store.db'], 'there is no store at'],
    [['inspect', '--store', '/nonexistent/store.db'], 'there is no store at'],
    [['inspect', '--call', '3'], '--call needs'],
    [['doctor', '--top', 'x'], '--top needs a number'],
  ])('%j is wrong use', async (args, sentence) => {
    const { code, stderr } = await cli(args)
    expect(code).toBe(2)
    expect(stderr).toContain(sentence)
  })
})

test.each([
  ['a\nb', 'a\nb', ''],
  ['a\nb\nc', 'a\nx\nc', ' a\n-b\n+x\n c'],
  ['', 'a', '-\n+a'],
  ['1\n2\n3\n4\n5\n6\n7\n8', '1\n2\n3\n4\nnew\n5\n6\n7\n8', '…\n 3\n 4\n+new\n 5\n 6\n…'],
  ['a\nb\nc\nd', 'b\nc\ne\nd', '-a\n b\n c\n+e\n d'],
])('the difference from %j to %j', (before, after, expected) => {
  expect([...changedLines(before, after)].join('\n')).toBe(expected)
})

function lines(count: number, line: (n: number) => string): string {
  return Array.from({ length: count }, (_, n) => line(n)).join('\n')
}

/** The view of a difference in `log` and `/context`. */
test.each<[string, string, string, RegExp]>([
  ['one long line', 'x'.repeat(8_000_000), 'y'.repeat(8_000_000), /^-x{399}… 7999601 more characters\n\+y{399}… 7999601 more characters$/],
  ['a long line of pairs', '', '\u{1f600}'.repeat(1_000), /\+(\u{1f600}){199}… 1602 more characters$/u],
  ['all lines', 'a line\n'.repeat(20_000), 'b line\n'.repeat(30_000), /\n… \d+ more lines changed, \+30000 -\d+$/],
  ['long lines', 'x'.repeat(500), Array.from({ length: 300 }, (_, n) => `${n}${'y'.repeat(5_000)}`).join('\n'), /… \d+ more lines changed, \+\d+ -0$/],
  ['one line too many', '', 'y'.repeat(200).concat('\n').repeat(202).trim(), /\n… 4 more lines changed, \+4 -0$/],
  [
    'a million changed lines',
    lines(1_000_000, (n) => `a${n}`),
    lines(1_000_000, (n) => `b${n}`),
    /^… too many lines .*\n-a0\n-a1\n[^]*\n… 199\d{4} more lines changed, \+1000000 -99\d{4}$/,
  ],
  [
    'a million changes',
    lines(2_000_000, (n) => (n % 2 === 0 ? `a${n}` : 'x')),
    lines(2_000_000, (n) => (n % 2 === 0 ? `b${n}` : 'x')),
    /^… too many lines to compare: 1999999 count as replaced by 1999999\n-a0\n-x\n[^]*\n… \d+ more lines changed, \+1999999 -\d+$/,
  ],
  ['changes near and far', '1\n2\n3\n4\n5\n6\n7\n8\n9\n10', 'a\n2\n3\n4\n5\nb\n7\n8\n9\nc', /^-1\n\+a\n 2\n 3\n 4\n 5\n-6\n\+b\n 7\n 8\n 9\n-10\n\+c$/],
  ['changes with more between them', '1\n2\n3\n4\n5\n6\n7\n8', 'a\n2\n3\n4\n5\n6\n7\nb', /^-1\n\+a\n 2\n 3\n…\n 6\n 7\n-8\n\+b$/],
  ['a few lines', 'a\nb', 'a\nc', /^ a\n-b\n\+c$/],
  ['nothing', 'a', 'a', /^$/],
])('bounded_difference_has_a_limit: %s', (_, before, after, expected) => {
  const shown = bounded(changedLines(before, after)).join('\n')
  expect(shown.length).toBeLessThan(40_100)
  expect(shown).toMatch(expected)
})

describe('inspect', () => {
  test('lists sessions, and the page has every object with its versions; the store stays as it was', async () => {
    const store = await storeOf('pi-version-3.jsonl')
    const before = readFileSync(store)
    const listed = await cli(['inspect', '--store', store])
    expect(listed.stdout).toMatch(/9 turns +\d+ objects +\S+ {2}\/home\/dev\/shop {2}Read the shop and tell me .+\n$/)
    const page = join(temporaryFolder(), 'store.html')
    expect((await cli(['inspect', '--store', store, '--html', page])).code).toBe(0)
    const html = readFileSync(page, 'utf8')
    for (const name of ['money', 'cart', 'stock', 'discount']) expect(html.includes(`/home/dev/shop/src/${name}.ts`), name).toBe(true)
    expect(html.includes('+  // Parts without a price are a mistake')).toBe(true)
    expect(html.includes('Leave them where they are')).toBe(true)
    expect(/<script|<img|<link|url\(/.exec(html)?.[0]).toBeUndefined()
    expect(readFileSync(store).equals(before)).toBe(true)
    expect(existsSync(`${store}-wal`) && statSync(`${store}-wal`).size > 0).toBe(false)
  })

  test('shows the exact request of call N, rolls and a step back included', async () => {
    const text = (n: number) => `line of file ${n} that is long enough to count for something\n`.repeat(120)
    let step = 0
    const server = await startModelServer((request) => {
      if (request.kind !== 'agent') return 'summary'
      step += 1
      const round = Math.floor((step - 1) / 3)
      if (step % 3 === 1) return calls(['write', { path: `f${round}.txt`, content: text(round) }])
      if (step % 3 === 2) return calls(['read', { path: `f${round}.txt` }], ['bash', { command: `wc f${round}.txt` }])
      return `round ${round} is done`
    })
    const home = createPiHome({
      server,
      api: 'anthropic-messages',
      model: { cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
    })
    const rpc = await startRpc({ home, ...withExtension(join(home.root, 'context.db'), SOON) })
    for (let round = 0; round < 12; round += 1) await rpc.prompt(`do round ${round}`)
    const { sessionFile } = await rpc.state()
    await rpc.close()
    server.check()
    const requests = server.agentRequests
    expect(requests).toHaveLength(36)
    expect(requests.some(({ raw }) => raw.includes('toolcall_ref '))).toBe(true)
    for (const [n, { body }] of requests.entries()) {
      const { calls: count, request } = await rebuild(sessionFile, n)
      expect(count).toBe(36)
      expect(textsOf(request?.messages ?? []), `call ${n}`).toEqual(sentTexts(body))
    }
    expect((await rebuild(sessionFile, 36)).request).toBeUndefined()
  })

  test('after a compaction and a branch the recorded session gives a request for each call', async () => {
    const { steps } = await stepsOf(fixture('pi-version-3.jsonl'))
    const answers = entriesOf(steps).filter(({ message }) => isCall(message))
    for (const n of answers.keys()) {
      const { request } = await rebuild(fixture('pi-version-3.jsonl'), n)
      expect(request?.messages.length).toBeGreaterThan(1)
    }
    const last = (await rebuild(fixture('pi-version-3.jsonl'), answers.length - 1)).request
    expect(last?.messages.some(({ role }) => role === 'compactionSummary')).toBe(true)
    expect(JSON.stringify(last?.messages)).not.toContain('Move all rules into one file')
  })
})

/** Texts, arguments and results of messages in their order. */
function textsOf(messages: readonly Message[]): string[] {
  const known = new Calls()
  return messages
    .filter(({ role }) => role !== 'system')
    .flatMap((message) => {
      known.add(message)
      return blocksOf({ key: '', message }, known).map((block) => {
        const [, inner] = JSON.parse(block.bytes) as [string, { type: string; text?: string; input?: object; content?: { text: string }[] }]
        if (inner.type === 'tool_use') return JSON.stringify(inner.input)
        return inner.type === 'tool_result' ? (inner.content ?? []).map((one) => one.text).join('\n') : (inner.text ?? '')
      })
    })
}

/** The same of a request as it arrived. */
function sentTexts(body: Record<string, any>): string[] {
  return body['messages'].flatMap((message: Record<string, any>) => {
    if (message['role'] === 'system') return []
    const content = typeof message['content'] === 'string' ? [{ type: 'text', text: message['content'] }] : message['content']
    return content.map((block: Record<string, any>) => {
      if (block['type'] === 'tool_use') return JSON.stringify(block['input'])
      if (block['type'] !== 'tool_result') return block['text']
      return typeof block['content'] === 'string' ? block['content'] : block['content'].map((one: { text: string }) => one.text).join('\n')
    })
  })
}
