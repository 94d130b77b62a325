/** The parts of the extension that need no Pi: tools, ranges, results, replacements. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { SessionEntry } from '@earendil-works/pi-coding-agent'
import { Circumstances } from '../../extensions/circumstances.ts'
import { CompactionSettings } from '../../extensions/compaction-settings.ts'
import { entriesAfter, messageOf, messagesOf, POINT, points, replacementOf } from '../../extensions/messages.ts'
import type { SessionTree } from '../../extensions/messages.ts'
import { billOf, isOnPlan, lastAnswer, physicalModel, possibleModels } from '../../extensions/provider.ts'
import { appendsTools } from '../../extensions/recall.ts'
import { DEFAULTS } from '../../extensions/settings.ts'
import { MAX_OUTPUT_BYTES, toolcallOf, withHeader } from '../../extensions/results.ts'
import { namesBeside, registerTools, TOOLS_TOKENS } from '../../extensions/tools.ts'
import { cleanUp, onCleanUp } from '../../rig/pi.ts'

afterEach(cleanUp)

describe('tools', () => {
  test('schemas and guidance together take at most 600 tokens', () => {
    const words: string[] = []
    const pi = {
      registerTool(tool: any): void {
        const { name, description, parameters } = tool
        words.push(JSON.stringify({ type: 'function', function: { name, description, parameters } }))
        // Words in the system prompt would change it where the tools come later.
        expect([tool.promptSnippet, tool.promptGuidelines]).toEqual([undefined, undefined])
      },
    }
    registerTools(
      pi as any,
      () => {
        throw new Error('not open')
      },
      namesBeside(new Set()),
    )
    const characters = words.join('').length
    expect(words).toHaveLength(5)
    expect(characters / 4).toBeLessThan(600)
    expect(TOOLS_TOKENS).toBe(Math.ceil(characters / 4))
  })
})

describe('ways back', () => {
  test.each<[object | undefined, boolean]>([
    [undefined, false],
    [{}, false],
    [{ supportsMidConvoSystemMessages: true }, false],
    [{ supportsMidConvoToolChanges: true }, false],
    [{ supportsMidConvoSystemMessages: true, supportsMidConvoToolChanges: true }, true],
    [{ supportsMidConvoSystemMessages: true, supportsMidConvoToolAdditions: true }, true],
    [{ supportsMidConvoSystemMessages: true, supportsAdditionalTools: true }, true],
    [{ supportsMidConvoSystemMessages: true, supportsToolSearch: true }, true],
  ])('a model with %j takes tools in the middle: %s', (compat, takes) => {
    expect(appendsTools({ compat } as any)).toBe(takes)
  })
})

describe('results', () => {
  const event = (more: object): any => ({
    type: 'tool_result',
    toolCallId: 'call_1',
    toolName: 'bash',
    input: { command: 'x' },
    isError: false,
    details: undefined,
    content: [{ type: 'text', text: 'shown' }],
    ...more,
  })

  function outputFile(text: string | Uint8Array, name = 'pi-bash-0123456789abcdef.log'): string {
    const path = join(tmpdir(), name)
    writeFileSync(path, text)
    onCleanUp(() => rmSync(path, { force: true }))
    return path
  }

  test('the whole output, where Pi names its file', async () => {
    const details = { fullOutputPath: outputFile('all of it') }
    expect(await toolcallOf(event({ details }))).toEqual({
      id: 'call_1',
      tool: 'bash',
      args: { command: 'x' },
      content: 'all of it',
      status: 'ok',
    })
  })

  test('the whole output of a failed command, whose file is named in the text alone', async () => {
    const path = outputFile('all of it', 'pi-bash-0123456789abcde0.log')
    const text = `part\n\n[Showing lines 5-9 of 9. Full output: ${path}]\n\nCommand exited with code 2`
    const found = await toolcallOf(event({ isError: true, content: [{ type: 'text', text }] }))
    expect(found).toMatchObject({ status: 'fail', content: 'all of it\n\nCommand exited with code 2' })
  })

  test.each([
    ['another folder', '/etc/pi-bash-0123456789abcdef.log'],
    ['another name', join(tmpdir(), 'secret.txt')],
    ['a way around', join(tmpdir(), 'x/../../etc/pi-bash-00.log')],
  ])('a mark that names %s is text', async (_name, path) => {
    const text = `part\n\n[Showing lines 5-9 of 9. Full output: ${path}]`
    expect((await toolcallOf(event({ content: [{ type: 'text', text }] }))).content).toBe(text)
  })

  test('a file that is gone, too large, or a folder leaves the shown text', async () => {
    const gone = join(tmpdir(), 'pi-bash-ffffffffffffffff.log')
    const large = outputFile(new Uint8Array(MAX_OUTPUT_BYTES + 1), 'pi-bash-0123456789abcde1.log')
    for (const fullOutputPath of [gone, large, tmpdir()]) {
      expect((await toolcallOf(event({ details: { fullOutputPath } }))).content).toBe('shown')
    }
  })

  test('the header goes before the first text, and nowhere else', () => {
    const image = { type: 'image' as const, data: 'x', mimeType: 'image/png' }
    const text = { type: 'text' as const, text: 'one' }
    expect(withHeader([image, text, text], 'H')).toEqual([image, { type: 'text', text: 'H\none' }, text])
    expect(withHeader([image], 'H')).toEqual([image])
    expect(withHeader([], 'H')).toEqual([])
  })
})

describe('entries and messages', () => {
  const entry = (id: string, parentId: string | null, more: object): SessionEntry => ({ id, parentId, timestamp: '', ...more }) as SessionEntry
  const user = (id: string, parentId: string | null) => entry(id, parentId, { type: 'message', message: { role: 'user', content: id, timestamp: 0 } })
  const branch = (entries: SessionEntry[], leaf: string | null): SessionTree => ({
    getLeafId: () => leaf,
    getEntry: (id) => entries.find((one) => one.id === id),
  })

  test('new entries follow the last one, oldest first', () => {
    const entries = [user('a', null), user('b', 'a'), user('c', 'b'), user('x', 'a')]
    const ids = (last: string | null, leaf: string | null) => entriesAfter(branch(entries, leaf), last)?.map((one) => one.id)
    expect(ids(null, 'c')).toEqual(['a', 'b', 'c'])
    expect(ids('a', 'c')).toEqual(['b', 'c'])
    expect(ids('c', 'c')).toEqual([])
    expect(ids(null, null)).toEqual([])
    expect(ids('b', 'x')).toBeUndefined()
    expect(ids('gone', 'c')).toBeUndefined()
  })

  test('only the entries that Pi sends are messages', () => {
    const bash = (more: object) => entry('b', null, { type: 'message', message: { role: 'bashExecution', command: 'x', ...more } })
    expect(messageOf(user('a', null))).toMatchObject({ role: 'user' })
    expect(messageOf(bash({}))).toMatchObject({ role: 'bashExecution' })
    expect(messageOf(bash({ excludeFromContext: true }))).toBeUndefined()
    expect(messageOf(entry('s', null, { type: 'message', message: { role: 'system' } }))).toBeUndefined()
    expect(messageOf(entry('m', null, { type: 'model_change' }))).toBeUndefined()
    expect(messageOf(entry('c', null, { type: 'custom_message', customType: 't', content: 'x', display: true }))).toEqual({
      role: 'custom',
      customType: 't',
      content: 'x',
    })
    const projection = [{ sourceEntry: user('a', null), messages: [{ role: 'system' }, { role: 'user', content: 'x' }] }]
    expect(messagesOf(projection as any)).toEqual([{ key: 'a', message: { role: 'user', content: 'x' } }])
  })

  test('a replaced result keeps its images, a replaced answer all but the edited parts', () => {
    const image = { type: 'image', data: 'x', mimeType: 'image/png' }
    const result = { role: 'toolResult', content: [{ type: 'text', text: 'long' }, image] } as any
    const to = (text?: string) => replacementOf({ kind: 'result', key: 'r', object: 'o', ...(text === undefined ? {} : { text }) }, result)
    expect(to('ref')).toEqual({ content: [{ type: 'text', text: 'ref' }, image] })
    expect(to()).toEqual({ content: [{ type: 'text', text: 'long' }, image] })

    const thinking = { type: 'thinking', thinking: 'hm', thinkingSignature: 'sig' }
    const call = (id: string) => ({
      type: 'toolCall',
      id,
      name: 'write',
      arguments: { content: 'long' },
      thoughtSignature: 's',
    })
    const said = { type: 'text', text: 't' }
    const answer = { role: 'assistant', content: [thinking, call('a'), said, call('')] } as any
    const edit = (calls: any[], texts: any[] = []) => replacementOf({ kind: 'message', key: 'm', calls, texts }, answer)
    const short = { content: 'short' }
    expect(edit([{ callId: '', position: 1, args: short }])).toEqual({
      content: [thinking, call('a'), said, { ...call(''), arguments: short }],
    })
    expect(edit([{ callId: 'a', position: 1, args: short }])).toEqual({ content: answer.content })
    expect(edit([])).toEqual({ content: answer.content })
    // Blocks are counted in the message as it was handed over, also where several leave.
    expect(edit([{ callId: '', position: 1, args: short }], [{ block: 0 }, { block: 2, text: 'b' }])).toEqual({
      content: [call('a'), { type: 'text', text: 'b' }, { ...call(''), arguments: short }],
    })

    const asked = (content: unknown) => ({ role: 'user', content }) as any
    const texts = [{ block: 0, text: 'begin' }]
    const ofUser = (content: unknown) => replacementOf({ kind: 'message', key: 'u', calls: [], texts }, asked(content))
    expect(ofUser('long')).toEqual({ content: 'begin' })
    expect(ofUser([said, image])).toEqual({ content: [{ type: 'text', text: 'begin' }, image] })

    expect(replacementOf({ kind: 'gone', key: 'm' }, answer)).toBeNull()
    expect(replacementOf({ kind: 'gone', key: 'r' }, result)).toBeNull()
    expect(replacementOf({ kind: 'gone', key: 'u' }, asked('long'))).toBeUndefined()
    expect(replacementOf({ kind: 'message', key: 'm', calls: [], texts: [] }, result)).toBeUndefined()
    expect(replacementOf({ kind: 'result', key: 'm', object: 'o' }, answer)).toBeUndefined()
    expect(replacementOf({ kind: 'result', key: 'x', object: 'o' }, undefined)).toBeUndefined()
  })

  test('the points of a branch, the last one first, without entries that only look like one', () => {
    const point = (id: string, data: unknown) => entry(id, null, { type: 'custom', customType: POINT, data })
    const [first, last] = [
      { session: 's', tx: 3 },
      { session: 's', tx: 7 },
    ]
    expect([...points([])]).toEqual([])
    const branch = [point('a', first), point('b', { session: 's' }), point('c', last), point('d', null), user('e', 'd')]
    expect([...points(branch)]).toEqual([
      { index: 2, point: last },
      { index: 0, point: first },
    ])
  })
})

describe('the provider', () => {
  const entry = (id: string, parentId: string | null, more: object): SessionEntry =>
    ({ id, parentId, timestamp: '2026-01-01T00:05:00.000Z', ...more }) as SessionEntry
  const usage = (cost: object, cacheRead = 0) => ({ input: 10, output: 1, cacheRead, cacheWrite: 0, cost })
  const estimate = { input: 1, output: 2, cacheRead: 3, cacheWrite: 0, total: 6 }
  const charged = { ...estimate, total: 3, totalFromProvider: true }
  const answer = (id: string, parentId: string | null, cost: object, more: object = {}) =>
    entry(id, parentId, {
      type: 'message',
      message: { role: 'assistant', provider: 'p', model: 'm', timestamp: 1000, stopReason: 'stop', usage: usage(cost, 30), ...more },
    })
  const warm = entry('w', 'a', { type: 'usage', kind: 'cache_warm', usage: usage(estimate) })
  const branch = (entries: SessionEntry[]): SessionTree => ({
    getLeafId: () => entries.at(-1)?.id ?? null,
    getEntry: (id) => entries.find((one) => one.id === id),
  })

  test.each<[what: string, registry: object | undefined, isPlan: boolean]>([
    ['a login', { isUsingOAuth: () => true }, true],
    ['a key', { isUsingOAuth: () => false }, false],
    ['an earlier Pi, which does not tell', {}, false],
    ['no registry', undefined, false],
  ])('a model with %s is on a plan: %3$s', (_what, modelRegistry, isPlan) => {
    expect(isOnPlan({ modelRegistry } as never, {} as never)).toBe(isPlan)
    expect(isOnPlan({ modelRegistry } as never, undefined)).toBe(false)
  })

  test('the billed amounts win over a catalogue, and all requests count', () => {
    expect(billOf([])).toEqual({ cost: 0, isBilled: false, perCatalogueDollar: 1, cachedShare: undefined })
    expect(billOf([answer('a', null, estimate), warm])).toEqual({
      cost: 12,
      isBilled: false,
      perCatalogueDollar: 1,
      cachedShare: 0.75,
    })
    expect(billOf([answer('a', null, charged)])).toMatchObject({ cost: 3, isBilled: true, perCatalogueDollar: 0.5 })
    // The ledger counts savings at the price that this provider charges.
    expect([lastAnswer(branch([answer('a', null, charged)])), lastAnswer(branch([answer('a', null, estimate)]))]).toMatchObject([
      { perCatalogueDollar: 0.5 },
      { perCatalogueDollar: 1 },
    ])
    expect(billOf([answer('a', null, charged), warm])).toMatchObject({ cost: 9, isBilled: false, perCatalogueDollar: 0.5 })
  })

  test('the last answer, and how long its cache was kept warm', () => {
    const failed = answer('e', 'w', estimate, { stopReason: 'error' })
    expect(lastAnswer(branch([]))).toBeUndefined()
    const first = answer('a', null, estimate)
    expect(lastAnswer(branch([first]))).toEqual({ provider: 'p', model: 'm', atMs: 1000, perCatalogueDollar: 1, warmedMs: undefined })
    expect(lastAnswer(branch([first, warm, failed]))?.warmedMs).toBe(Date.parse(warm.timestamp))
    expect(lastAnswer(branch([first, warm, answer('b', 'w', estimate)]))?.warmedMs).toBeUndefined()
  })

  test('a model that routes its requests has the prices of the one that answered', () => {
    const routed = { provider: 'p', id: 'm', api: 'x' }
    const ctx = (api: string) => ({ model: { provider: 'r', id: 'auto', api }, modelRegistry: { find: () => routed } }) as any
    const last = lastAnswer(branch([answer('a', null, estimate)]))
    expect(physicalModel(ctx('pi-virtual'), last)).toBe(routed)
    expect(physicalModel(ctx('pi-virtual'), undefined)).toMatchObject({ id: 'auto' })
    expect(physicalModel(ctx('openai-completions'), last)).toMatchObject({ id: 'auto' })
  })

  test('the models that a router may choose are those that have answered, and what was walked is not walked again', () => {
    const answers = Array.from({ length: 60 }, (_, n) => answer(`a${n}`, n === 0 ? null : `a${n - 1}`, estimate, { model: `m${n % 3}` }))
    const other = answer('other', 'a1', estimate, { model: 'elsewhere' })
    const all = new Map([...answers, other].map((one) => [one.id, one]))
    let [leaf, reads]: [string | null, number] = [null, 0]
    const sessionManager: SessionTree = { getLeafId: () => leaf, getEntry: (id) => ((reads += 1), all.get(id)) }
    const ctx = { model: { provider: 'r', id: 'auto', api: 'pi-virtual' }, sessionManager, modelRegistry: { find: (_: string, id: string) => ({ id }) } }
    const found = (at: string | null): [string[], number] => {
      ;[leaf, reads] = [at, 0]
      return [possibleModels(ctx as never).map(({ id }) => id), reads]
    }
    expect(found(null)).toEqual([[], 0])
    expect(found('a56')).toEqual([['m0', 'm1', 'm2'], 57])
    expect(found('a59')).toEqual([['m0', 'm1', 'm2'], 3])
    expect(found('other')[0].toSorted()).toEqual(['elsewhere', 'm0', 'm1'])
    expect(found('a1')[0].toSorted()).toEqual(['m0', 'm1'])
  })

  test.each<[string, object, [appends: boolean, binds: boolean]]>([
    ['takes new tools in mid-conversation', { supportsMidConvoSystemMessages: true, supportsToolSearch: true }, [true, false]],
    ['binds its reasoning to its tools', {}, [false, true]],
  ])('a model that routes its requests: the one that answered %s', (_name, compat, expected) => {
    const routed = {
      provider: 'anthropic',
      id: 'claude-opus-5-5',
      api: 'anthropic-messages',
      baseUrl: 'https://api.anthropic.com',
      compat,
      cost: {},
      contextWindow: 1,
    }
    const entry = {
      id: 'a',
      parentId: null,
      type: 'message',
      message: { role: 'assistant', provider: 'anthropic', model: 'claude-opus-5-5', timestamp: 1, stopReason: 'stop' },
    }
    const at = (entries: object[]) =>
      ({
        model: { provider: 'r', id: 'auto', api: 'pi-virtual', cost: {}, contextWindow: 1 },
        modelRegistry: { find: () => routed },
        sessionManager: { getLeafId: () => (entries.length > 0 ? 'a' : null), getEntry: () => entries[0] },
        getSystemPrompt: () => '',
      }) as any
    const circumstances = new Circumstances({ getActiveTools: () => [], getAllTools: () => [] } as any, DEFAULTS)
    const found = (ctx: any) => [circumstances.appendsTools(ctx), circumstances.bindsTools(ctx)]
    expect(found(at([]))).toEqual([false, false])
    expect(found(at([entry]))).toEqual(expected)
  })
})

describe("Pi's settings for its compaction", () => {
  const settingsIn = (make: (project: string) => void): object => {
    const project = mkdtempSync(join(tmpdir(), 'pi-settings-'))
    onCleanUp(() => rmSync(project, { recursive: true, force: true }))
    make(project)
    const ctx = { cwd: project, model: { provider: 'p', id: 'm' }, isProjectTrusted: () => true }
    return new CompactionSettings().of(ctx as any)
  }

  test("those of a trusted project, and the user's or Pi's own where its file is damaged or its folder is a file", () => {
    const without = settingsIn(() => {})
    const written = (text: string) => (project: string) => {
      mkdirSync(join(project, '.pi'))
      writeFileSync(join(project, '.pi', 'settings.json'), text)
    }
    expect(settingsIn(written('{"compaction":{"reserveTokens":1234}}'))).toEqual({ ...without, reserveTokens: 1234 })
    expect(settingsIn(written('{"compaction":'))).toEqual(without)
    expect(settingsIn((project) => writeFileSync(join(project, '.pi'), ''))).toEqual(without)
  })
})
