/** The files with the forms in which conversations were sent: their readers, their owners, and damaged ones. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { formFile, formsFolder, FORMS_FOLDER } from '../../lib/gateway/form-files.ts'
import type { Remembered } from '../../lib/gateway/form-files.ts'
import { withRest } from '../../lib/gateway/beginning.ts'
import { Forms } from '../../lib/gateway/forms.ts'
import type { LastForm } from '../../lib/gateway/forms.ts'
import { chainOf } from '../../lib/gateway/prefix.ts'
import { cutItems } from '../../lib/projection/index.ts'
import { folder } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, gatewayTo, long, upstream } from './support.ts'

afterEach(cleanUp)

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))
const messages = Array.from({ length: 200 }, (_, n) => ({ role: 'user', content: `message ${n}` }))
const chain = chainOf(messages)
const named = { id: 'claude-code:s', cwd: '/tmp' }
const form = (items: LastForm['items'], atMs = 1): LastForm => ({ chain, atMs, items, wasEdited: true })
/** The items for the first messages of a conversation: those that were stored, and the other messages as they are. */
const opened = ({ form }: Pick<Remembered, 'form'>, of: readonly string[], length: number): unknown => {
  const found = form.open(of, length)
  return found === undefined ? undefined : withRest(found, length)
}
const shown = (all: readonly Remembered[]): unknown[] => all.map((one) => ({ id: one.id, cwd: one.cwd, atMs: one.form.atMs, items: opened(one, chain, 200) }))
const place = (): string => join(folder(), 'forms')
const fileIn = (path: string): string => join(path, readdirSync(path)[0]!)

describe('a file', () => {
  test('brings the last form back, and only its user can read it', () => {
    const path = place()
    const forms = new Forms(path)
    for (let n = 1; n < 200; n += 1)
      forms.note(
        'key',
        named,
        form(
          Array.from({ length: n }, (_, at) => at),
          n,
        ),
      )
    expect(shown(new Forms(path).of('key'))).toEqual([{ ...named, atMs: 199, items: Array.from({ length: 199 }, (_, at) => at) }])
    expect(new Forms(path).of('other')).toEqual([])
    expect([statSync(path).mode & 0o777, statSync(fileIn(path)).mode & 0o777]).toEqual([0o700, 0o600])
    // A request writes only the part after the common beginning.
    expect(statSync(fileIn(path)).size).toBeLessThan(60_000)
  })

  test('reveals no text of a form without its messages', () => {
    const path = place()
    const items: LastForm['items'] = [
      0,
      [1, { fields: { content: { is: 'a secret excerpt' } } }],
      { add: { role: 'user', content: 'a secret notice' }, isNotice: true },
      2,
      { add: { role: 'user', content: 'the end' } },
    ]
    const three = { ...form(items), chain: chain.slice(0, 4) }
    new Forms(path).note('key', named, three)
    expect(readFileSync(fileIn(path), 'utf8')).not.toMatch(/secret|the end/)
    const [stored] = new Forms(path).of('key') as [Remembered]
    expect(opened(stored, chain, 3)).toEqual(items)
    expect(opened(stored, chain, 2)).toEqual(items.slice(0, 3))
    expect(opened(stored, chain, 1)).toEqual([0])
    expect(opened(stored, chainOf([{ role: 'user', content: 'another one' }, ...messages.slice(1)]), 3)).toBeUndefined()
  })

  test('knows which message goes out without one of its first parts, although it is sealed', () => {
    const path = place()
    const lacks: LastForm['items'] = [0, [2, { fields: { content: { items: [1] } } }]]
    const keeps: LastForm['items'] = [0, [2, { fields: { content: { items: [0] } } }]]
    for (const [key, items, wanted] of [
      ['lacks', lacks, [0, 1]],
      ['keeps', keeps, [0]],
    ] as const) {
      new Forms(path).note(key, named, { ...form(items), chain: chain.slice(0, 4) })
      const [stored] = new Forms(path).of(key) as [Remembered]
      expect(opened(stored, chain, 3)).toEqual(items)
      expect(opened(stored, chain, 2)).toEqual(wanted)
      expect(cutItems(items, 3, 2)).toEqual(wanted)
    }
  })

  test('brings the form back although the host has changed the first message', () => {
    const path = place()
    const forms = new Forms(path)
    const items: LastForm['items'] = [0, [1, { fields: { content: { is: 'an edit' } } }], 2, { add: { role: 'user', content: 'a notice' }, isNotice: true }, 3]
    const four = { ...form(items), chain: chain.slice(0, 5) }
    forms.note('key', named, four)
    const other = chainOf([{ role: 'user', content: 'another first message' }, ...messages.slice(1, 4)])
    for (const one of [other, chain.slice(0, 5)]) {
      forms.note('key', named, { ...four, chain: one })
      const [stored] = new Forms(path).of('key') as [Remembered]
      expect(opened(stored, one, 4)).toEqual(items)
    }
  })

  describe('keeps what is known beside the form:', () => {
    const beside = (path: string): unknown =>
      new Forms(path).of('key').map(({ form, left, branches }) => ({ atMs: form.atMs, left: left.map((one) => [one.atMs, one.links.length - 1]), branches }))
    const long = (count: number, atMs: number): LastForm => ({ ...form([...messages.keys()].slice(0, count), atMs), chain: chain.slice(0, count + 1) })

    test('the forms before steps back, at most eight, also once another process writes the file anew', () => {
      const path = place()
      const forms = new Forms(path)
      forms.note('key', named, long(50, 1))
      for (let n = 2; n < 13; n += 1) forms.note('key', named, long(50 - n, n), true)
      forms.note('key', named, long(60, 13))
      const left = Array.from({ length: 8 }, (_, n) => [n + 4, 46 - n])
      expect(beside(path)).toEqual([{ atMs: 13, left, branches: [] }])
      const other = new Forms(path)
      const [stored] = other.of('key') as [Remembered]
      expect(stored.left[0]!.open(chain, 46)).toEqual({ items: [...messages.keys()].slice(0, 46), length: 46 })
      other.note('key', named, long(61, 14))
      expect(beside(path)).toEqual([{ atMs: 14, left, branches: [] }])
    })

    test('branches, at most eight, which lines behind them leave as they are', () => {
      const path = place()
      const forms = new Forms(path)
      forms.noteBranches('key', named.id, [[1, 'unknown']])
      expect(beside(path)).toEqual([])
      forms.note('key', named, long(50, 1))
      const branches = Array.from({ length: 9 }, (_, n) => [n, `link ${n}`] as const)
      forms.noteBranches('key', named.id, branches)
      forms.note('key', named, long(51, 2))
      expect(beside(path)).toEqual([{ atMs: 2, left: [], branches: branches.slice(1) }])
      const other = new Forms(path)
      other.note('key', named, long(52, 3))
      other.noteBranches('key', named.id, [])
      expect(beside(path)).toEqual([{ atMs: 3, left: [], branches: [] }])
    })

    test('none once its file was erased', () => {
      const path = place()
      const forms = new Forms(path)
      forms.note('key', named, long(50, 1))
      forms.note('key', named, long(40, 2), true)
      forms.noteBranches('key', named.id, [[1, 'link']])
      rmSync(path, { recursive: true })
      forms.note('key', named, long(41, 3))
      expect(beside(path)).toEqual([{ atMs: 3, left: [], branches: [] }])
    })

    test('traces, without which a file of an earlier version is read as well', () => {
      const path = place()
      const forms = new Forms(path)
      const traces = (count: number): string[] => Array.from({ length: count + 1 }, (_, n) => `a${n}`)
      for (const count of [10, 11, 7, 30]) forms.note('key', named, { ...long(count, count), traces: traces(count) })
      expect(new Forms(path).of('key')[0]!.form.traces).toEqual(traces(30))
      const text = readFileSync(fileIn(path), 'utf8')
      writeFileSync(fileIn(path), text.replaceAll(/"traces":\[[^\]]*\],/g, ''))
      const [stored] = new Forms(path).of('key') as [Remembered]
      expect([stored.form.atMs, stored.form.traces, opened(stored, chain, 30)]).toEqual([30, undefined, [...messages.keys()].slice(0, 30)])
    })
  })

  test('with a line that a kill has torn has the line before', () => {
    const path = place()
    const forms = new Forms(path)
    forms.note('key', named, form([0, 1], 1))
    forms.note('key', named, form([0, 1, 2], 2))
    const lines = readFileSync(fileIn(path), 'utf8').trimEnd().split('\n')
    const last = lines.pop()!
    for (let length = 0; length < last.length; length += 7) {
      writeFileSync(fileIn(path), `${lines.join('\n')}\n${last.slice(0, length)}`)
      expect(shown(new Forms(path).of('key'))).toMatchObject([{ items: [0, 1] }])
    }
  })

  test.each([
    ['kept', null],
    ['kept', -1],
    ['kept', 1.5],
    ['kept', 3],
    ['linked', null],
    ['linked', 'x'],
    ['linked', 999],
    ['items', [1, 0]],
    ['items', null],
    ['links', null],
    ['links', [null]],
    ['atMs', null],
    ['wasEdited', null],
    ['run', null],
    ['traces', 7],
    ['traces', ['']],
    ['traces', [null, null]],
  ])('in whose last line %s is %j has the line before', (field, value) => {
    const path = place()
    const forms = new Forms(path)
    forms.note('key', named, form([0, 1], 1))
    forms.note('key', named, form([0, 1, 2], 2))
    const lines = readFileSync(fileIn(path), 'utf8').trimEnd().split('\n')
    writeFileSync(fileIn(path), `${lines.slice(0, -1).join('\n')}\n${JSON.stringify({ ...(JSON.parse(lines.at(-1)!) as object), [field]: value })}\n`)
    expect(shown(new Forms(path).of('key'))).toMatchObject([{ items: [0, 1] }])
  })

  test.each(['"items":[7000]', '"items":[null]', '"items":[[1,null]]', '"items":[{"add":1}]', '"items":7'])('with %s does not count', (damage) => {
    const path = place()
    new Forms(path).note('key', named, form([0, 1], 1))
    const text = readFileSync(fileIn(path), 'utf8')
    writeFileSync(fileIn(path), text.replace(/"items":\[0,1\]/, damage))
    expect(readFileSync(fileIn(path), 'utf8')).not.toBe(text)
    expect(new Forms(path).of('key')).toEqual([])
  })

  test('that was erased while gateways run has the whole form once one of them continues, and the other one sees it', () => {
    const path = place()
    const [forms, other] = [new Forms(path), new Forms(path)]
    forms.note('key', named, form([0, 1], 1))
    expect(other.of('key').length).toBe(1)
    rmSync(path, { recursive: true })
    expect(other.isForeign('key', named.id)).toBe(false)
    forms.note('key', named, form([0, 1, 2], 2))
    for (const one of [forms, other, new Forms(path)]) expect(shown(one.of('key'))).toMatchObject([{ items: [0, 1, 2] }])
  })

  test('written by another gateway is seen in its present state', () => {
    const path = place()
    const [one, other] = [new Forms(path), new Forms(path)]
    one.note('key', named, form([0], 1))
    for (let n = 2; n < 20; n += 2) {
      expect([one.isForeign('key', named.id), shown(other.of('key'))]).toMatchObject([false, [{ atMs: n - 1 }]])
      other.note('key', named, form([n], n))
      expect([one.isForeign('key', named.id), shown(one.of('key'))]).toMatchObject([true, [{ items: [n] }]])
      one.note('key', named, form([n + 1], n + 1))
      expect(shown(new Forms(path).of('key'))).toMatchObject([{ items: [n + 1] }])
    }
  })
})

test('where a host gives no IDs, the latest conversations are remembered', () => {
  const path = place()
  const forms = new Forms(path)
  for (let n = 0; n < 30; n += 1) forms.note('key', { id: `agent:${n}`, cwd: '/tmp' }, form([n], n))
  expect(new Set(forms.of('key').map(({ id }) => id))).toEqual(new Set(Array.from({ length: 20 }, (_, n) => `agent:${n + 10}`)))
  expect(new Forms(path).of('key').length).toBe(20)
})

test('the files of a gateway that runs for weeks stay few, and those of conversations that continue stay', () => {
  const path = place()
  const forms = new Forms(path)
  for (let n = 0; n < 400; n += 1) {
    forms.note('no name', { id: `agent:${n}`, cwd: '/tmp' }, form([n % 200], n))
    forms.note(`name ${n}`, { id: `session ${n}`, cwd: '/tmp' }, form([n % 200], n))
    forms.note('lasting', { id: 'lasting', cwd: '/tmp' }, form([n % 200], n))
  }
  expect(readdirSync(path).length).toBeLessThanOrEqual(600)
  expect(readdirSync(path).filter((name) => name.startsWith(formFile('no name', '').slice(0, 24))).length).toBeLessThanOrEqual(180)
  expect(shown(new Forms(path).of('lasting'))).toMatchObject([{ atMs: 399, items: [199] }])
  expect(new Forms(path).of('name 399').map(({ id }) => id)).toEqual(['session 399'])
})

describe('two gateways that take turns in one conversation', () => {
  const plain = (server: ModelServer): string[] => server.requests.at(-1)!.messages.map(({ json }) => json)

  test.each(['', 'and texts are forgotten meanwhile'])('send one conversation: nothing but rolls changes earlier messages %s', async (forgets) => {
    const server = await startModelServer(() => 'ok')
    const store = { kind: 'sqlite', path: join(folder(), 'context.db') } as const
    const place = { store, formsPath: formsFolder(store) }
    const gateways = [await gatewayTo(server.url, place), await gatewayTo(server.url, place)] as const
    const loop = new AnthropicLoop(gateways[0].gateway)
    let breaks = 0
    let before: string[] = []
    for (let n = 0; n < 60; n += 1) {
      const { gateway } = gateways[(n % 2) as 0 | 1]
      Object.assign(loop, { url: gateway.url })
      if (forgets !== '' && n % 8 === 7) execFileSync(process.execPath, [START, 'forget', '--store', store.path, '--text', long(`n${n - 4}`, 1)])
      await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
      const now = plain(server)
      if (before.some((json, at) => now[at] !== json)) breaks += 1
      before = now
    }
    const rolls = gateways.flatMap(({ gateway }) => gateway.ledger.sessions).reduce((sum, { rolls: own }) => sum + own.length, 0)
    expect(rolls).toBeGreaterThan(0)
    expect(breaks).toBeLessThanOrEqual(rolls)
    // A retry through the other one has the same bytes.
    Object.assign(loop, { url: gateways[0].gateway.url })
    await loop.send()
    expect(plain(server)).toEqual(before)
    expect(gateways.flatMap(({ warnings }) => warnings)).toEqual([])
  })
})

describe('on the disk', () => {
  const talk = async (store: string, session: string): Promise<void> => {
    const { url } = await upstream((_, response) => response.end('{}'))
    const options = { kind: 'sqlite', path: store } as const
    const { gateway } = await gatewayTo(url, { store: options, formsPath: formsFolder(options) })
    const loop = new AnthropicLoop(gateway, session)
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`))
    await gateway.close()
  }

  test('forgotten texts do not return, even if a client still sends them', async () => {
    const { url, seen } = await upstream((_, response) => response.end('{}'))
    const store = join(folder(), 'context.db')
    const options = { kind: 'sqlite', path: store } as const
    const open = async (): Promise<{ url: string }> => (await gatewayTo(url, { store: options, formsPath: formsFolder(options) })).gateway
    const onDisk = (): string =>
      readdirSync(formsFolder(options))
        .map((name) => readFileSync(join(formsFolder(options), name), 'utf8'))
        .join()
    const loop = new AnthropicLoop(await open())
    // Its form has the beginning of each output.
    for (let n = 0; n < 20; n += 1) await loop.call('Bash', { command: `cat n${n}` }, long(`n${n}`, 900))
    const secret = 'n19 line 0 of an output that is long enough to matter'
    const sent = seen.at(-1)!.body.toString()
    expect([sent.includes(`id=6af79970\\n${secret}`), sent.includes('n19 line 450 ')]).toEqual([true, false])
    expect(onDisk()).not.toContain('of an output')
    execFileSync(process.execPath, [START, 'forget', '--store', store, '--text', secret])
    await loop.call('Bash', { command: 'cat more' }, long('more'))
    expect(onDisk()).not.toContain('of an output')
    // So do the next gateway, and another session with the same messages.
    for (const session of [loop.session, 'session-2']) {
      const again = new AnthropicLoop(await open(), session)
      again.messages.push(...loop.messages)
      again.calls = 100
      for (let n = 0; n < 12; n += 1) await again.call('Bash', { command: `cat m${n}` }, long(`m${n}`, 900))
      expect(onDisk()).not.toContain('of an output')
    }
    expect(readdirSync(formsFolder(options)).length).toBe(2)
  })

  test('two stores in one folder have their own, and forget erases those of one', async () => {
    const home = folder()
    const [one, other] = [join(home, 'one.db'), join(home, 'other.db')]
    await talk(one, 'a')
    await talk(other, 'a')
    expect(readdirSync(join(home, FORMS_FOLDER)).toSorted()).toEqual(['one.db', 'other.db'])
    execFileSync(process.execPath, [START, 'forget', '--store', one, '--text', 'n3 line 7 of an output that is long enough to matter'])
    expect(readdirSync(join(home, FORMS_FOLDER))).toEqual(['other.db'])
  })

  test('doctor names superfluous files, and the next gateway repairs them if it can', async () => {
    const home = folder()
    const store = join(home, 'context.db')
    await talk(store, 'a')
    const path = join(home, FORMS_FOLDER, 'context.db')
    const gone = spawnSync(process.execPath, ['-e', '0']).pid
    const unfinished = join(path, `.x.jsonl.${gone}-0123456789abcdef.part`)
    writeFileSync(unfinished, 'half')
    writeFileSync(join(path, 'damaged.jsonl'), '{"version":3}\n{"run')
    chmodSync(
      join(
        path,
        readdirSync(path).find((name) => /^[0-9a-f]{24}-/.test(name))!,
      ),
      0o644,
    )
    new Forms(path).note('key', { id: 'claude-code:pruned', cwd: '/' }, form([0]))
    writeFileSync(unfinished, 'half')
    chmodSync(
      join(
        path,
        readdirSync(path).find((name) => /^[0-9a-f]{24}-/.test(name))!,
      ),
      0o644,
    )
    const found = (): string[] =>
      (
        JSON.parse(execFileSync(process.execPath, [START, 'doctor', '--store', store, '--json'], { encoding: 'utf8' })) as { forms: { why: string }[] }
      ).forms.map(({ why }) => why)
    expect(found().toSorted()).toEqual(
      [
        expect.stringContaining('left it unfinished'),
        expect.stringContaining('no form that this version can read'),
        expect.stringContaining('claude-code:pruned'),
        expect.stringContaining('others can read it'),
      ].toSorted(),
    )
    new Forms(path)
    expect(found().length).toBe(2)
    expect(existsSync(unfinished)).toBe(false)
    mkdirSync(join(path, 'a folder'))
    expect(found().length).toBe(3)
  })
})
