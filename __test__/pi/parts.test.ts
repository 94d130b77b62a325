/** The parts of the extension that need no Pi: settings, ranges, results, replacements, texts for the person. */
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { SessionEntry } from '@earendil-works/pi-coding-agent'
import { flattened } from '../../lib/driver/flat.ts'
import { bounded, Failures, isPassing, sentence } from '../../extensions/guard.ts'
import { entriesAfter, messageOf, messagesOf, replacementOf } from '../../extensions/messages.ts'
import type { Branch } from '../../extensions/messages.ts'
import { bytesOf, longWait, placeOf, sizeHint, storeLine } from '../../extensions/place.ts'
import type { XtdbPlace } from '../../extensions/place.ts'
import { POINT, points } from '../../extensions/point.ts'
import { billOf, lastAnswer, physicalModel } from '../../extensions/provider.ts'
import { appendsTools, objectIn } from '../../extensions/recall.ts'
import { isReference, readHeader } from '../../extensions/reference.ts'
import type { Report } from '../../extensions/report.ts'
import { MAX_OUTPUT_BYTES, toolcallOf, withHeader } from '../../extensions/results.ts'
import { checkSettings, DEFAULTS, readSettings } from '../../extensions/settings.ts'
import { namesBeside, registerTools, TOOLS_TOKENS } from '../../extensions/tools.ts'
import { short } from '../../extensions/shares.ts'
import { costLine, receiptLine, reportLines, savedLine } from '../../extensions/ui.ts'
import { cleanUp, onCleanUp, temporaryFolder } from '../rig/pi.ts'
import { rmSync } from 'node:fs'

afterEach(cleanUp)

describe('settings', () => {
  test.each<[string, unknown, object, string[]]>([
    ['nothing', {}, {}, []],
    [
      'all of them',
      { ...DEFAULTS, store: '/data/x.db', perTurn: 2, tools: 'observe' },
      { store: '/data/x.db', perTurn: 2, tools: 'observe' },
      [],
    ],
    ['a path at home', { store: '~/x.db' }, { store: join(homedir(), 'x.db') }, []],
    ['the address of a node', { store: 'http://db:3000' }, { store: { url: 'http://db:3000' } }, []],
    [
      'an XTDB database',
      { store: { url: 'http://db:3000', urls: ['http://db2:3000'], journal: '~/j.db' } },
      { store: { url: 'http://db:3000', urls: ['http://db2:3000'], journal: join(homedir(), 'j.db') } },
      [],
    ],
    ...['x.db', { url: 'db:3000' }, { urls: [] }, { url: 'http://db', journal: 'j.db' }, { url: 'http://db', x: 1 }].map(
      (store): [string, unknown, object, string[]] => [
        `a store ${JSON.stringify(store)}`,
        { store },
        {},
        [
          '"store" must be an absolute path, the http address of an XTDB node, or { "url", "urls", "journal" }, ' +
            `not ${JSON.stringify(store)}`,
        ],
      ],
    ),
    ['a word for a switch', { enabled: 'no' }, {}, ['"enabled" must be true or false, not "no"']],
    ['texts that stay', { thinking: 'keep', calls: 30 }, { thinking: 'keep', calls: 30 }, []],
    ['a debt cap', { debtCap: 0.1 }, { debtCap: 0.1 }, []],
    ['no debt cap', { debtCap: 'none' }, { debtCap: 'none' }, []],
    ['a debt cap below 0', { debtCap: -1 }, {}, ['"debtCap" must be "none" or a share of what was spent, 0 or more, not -1']],
    ['a stay of no calls', { prose: 0 }, {}, ['"prose" must be "keep" or a whole number of model calls of at least 1, not 0']],
    ['too small a window', { turnsBack: 0 }, {}, ['"turnsBack" must be a whole number of at least 1, not 0']],
    [
      'no lifetime',
      { cacheLifetimeSeconds: -1 },
      {},
      ['"cacheLifetimeSeconds" must be a number of seconds above 0, not -1'],
    ],
    ['texts that never collapse', { neverCollapse: { tools: ['todo'], files: ['docs/**'] } }, { neverCollapse: { tools: ['todo'], files: ['docs/**'] } }, []],
    ...[[], { tools: 'todo' }, { files: [''] }, { paths: [] }].map((value): [string, unknown, object, string[]] => [
      `no list of what never collapses: ${JSON.stringify(value)}`,
      { neverCollapse: value },
      {},
      [`"neverCollapse" must be { "tools": names, "files": globs }, each a list of texts, not ${JSON.stringify(value)}`],
    ]),
    ['a holdout', { holdout: 0.1 }, { holdout: 0.1 }, []],
    ['too large a holdout', { holdout: 10 }, {}, ['"holdout" must be a share of sessions from 0 to 1, not 10']],
    ['a name nobody knows', { toString: 1 }, {}, ['there is no setting "toString"']],
    ['a list', [], {}, [expect.stringMatching(/^the settings must be a JSON object such as /)]],
    ['null', null, {}, [expect.stringMatching(/^the settings must be a JSON object such as /)]],
  ])('%s', (_name, value, changed, problems) => {
    expect(checkSettings(value)).toMatchObject({ settings: { ...DEFAULTS, ...changed }, problems })
  })

  const node = { url: 'http://me:secret@db:3000', urls: ['http://db2:3000'], journal: '/j.db' }
  const remote = { kind: 'xtdb', ...node }
  const other = { kind: 'xtdb', url: 'http://a:1', urls: ['http://b:2'] }
  const two = { CONTEXT_STORE: 'xtdb', CONTEXT_XTDB_URL: 'http://a:1, http://b:2' }
  test.each<[string, boolean, string | XtdbPlace | undefined, Record<string, string>, object, string]>([
    ['nothing said', true, undefined, {}, { kind: 'sqlite', path: '/default.db' }, '/default.db'],
    ['a file', true, '/x.db', {}, { kind: 'sqlite', path: '/x.db' }, '/x.db'],
    ['a file of the environment', true, node, { CONTEXT_STORE_PATH: '/y.db' }, { kind: 'sqlite', path: '/y.db' }, '/y.db'],
    ['a session that is not kept', false, node, two, { kind: 'memory' }, 'memory'],
    ['memory', true, node, { CONTEXT_STORE: 'memory' }, { kind: 'memory' }, 'memory'],
    ['a database', true, node, {}, remote, 'xtdb http://db:3000'],
    ['the default file after all', true, node, { CONTEXT_STORE: 'sqlite' }, { kind: 'sqlite', path: '/default.db' }, '/default.db'],
    ['a database of the environment', true, '/x.db', two, other, 'xtdb http://a:1'],
    ['its journal', true, node, { ...two, CONTEXT_XTDB_JOURNAL: '/k.db' }, { ...other, journal: '/k.db' }, 'xtdb http://a:1'],
    ['the database of the settings', true, node, { CONTEXT_STORE: 'xtdb' }, remote, 'xtdb http://db:3000'],
  ])('the place of %s', (_name, kept, setting, env, options, name) => {
    expect(placeOf(kept, setting, env, () => '/default.db')).toEqual({ options, name })
  })

  test.each([
    [{ CONTEXT_STORE: 'postgres' }, 'CONTEXT_STORE is sqlite, xtdb or memory, not "postgres"'],
    [{ CONTEXT_STORE: 'xtdb' }, 'CONTEXT_STORE=xtdb needs the address of a node in CONTEXT_XTDB_URL'],
  ])('a place that can not be: %j', (env, sentence) => {
    expect(() => placeOf(true, '/x.db', env, () => '')).toThrow(sentence)
  })

  test('a queue is told in one line, and in the status line only after half a minute', () => {
    const state = { kind: 'xtdb' as const, url: 'http://db2:3000', connected: true, queued: 0, sender: true }
    const since = '2026-01-31T12:00:00.000Z'
    const waiting = { ...state, connected: false, queued: 2, waitingSince: since, lastError: 'no answer\nin time' }
    expect(storeLine('/x.db', { kind: 'sqlite', queued: 0 })).toBe('/x.db')
    expect(storeLine('xtdb http://db:3000', state)).toBe('xtdb http://db2:3000, everything sent')
    expect(storeLine('', waiting)).toBe(
      `xtdb http://db2:3000, 2 transactions waiting since ${since}, no answer, last error: no answer in time`,
    )
    expect(storeLine('', { ...state, queued: 1 })).toBe('xtdb http://db2:3000, 1 transaction waiting')
    const start = Date.parse(since)
    expect([longWait(waiting, start + 29_999), longWait(waiting, start + 30_000)]).toEqual([undefined, '2 waiting for XTDB'])
    expect(longWait(state, start + 99_999)).toBeUndefined()
  })

  test('a folder without the file, a broken file, a folder in its place', () => {
    const folder = temporaryFolder('settings-')
    expect(readSettings({ user: folder })).toEqual({ settings: DEFAULTS, given: new Set(), problems: [] })
    writeFileSync(join(folder, 'context-manager.json'), '{')
    expect(readSettings({ user: folder })).toEqual({
      settings: DEFAULTS,
      given: new Set(),
      problems: [expect.stringContaining('is not JSON')],
    })
    const other = temporaryFolder('settings-')
    mkdirSync(join(other, 'context-manager.json'))
    expect(readSettings({ user: other })).toEqual({ settings: DEFAULTS, given: new Set(), problems: [`${join(other, 'context-manager.json')} is not a file, so no settings are read from it`] })
  })

  test.each<[string, (file: string) => void, RegExp]>([
    ['no JSON', (file) => writeFileSync(file, '{ perTurn: 3 }'), /context-manager\.json is not JSON, so nothing in it counts: /],
    ['a list', (file) => writeFileSync(file, '[1]'), /the settings must be a JSON object such as \{ "perTurn": 5 \}, not \[1\]$/],
    ['a wrong type', (file) => writeFileSync(file, '{ "perTurn": "3" }'), /"perTurn" must be a whole number of at least 1, not "3"$/],
    ['an unknown name', (file) => writeFileSync(file, '{ "perTrun": 3 }'), /there is no setting "perTrun"; did you mean "perTurn"\?$/],
    ['a folder', (file) => mkdirSync(file), /is not a file, so no settings are read from it$/],
    ['a link to nothing', (file) => symlinkSync('/nowhere', file), /^$/],
    ['a link out of the project', (file) => symlinkSync(process.execPath, file), /leads out of the project, to .*, so it is not read; copy the file$/],
    ['a link in a circle', (file) => symlinkSync(file, file), /can't be read: too many symbolic links encountered$/],
  ])("a project's file that can't be used leaves the user's settings: %s", (_name, make, sentence) => {
    const [user, project] = [temporaryFolder('settings-'), join(temporaryFolder('settings-'), '.pi')]
    writeFileSync(join(user, 'context-manager.json'), '{"perTurn": 8}')
    mkdirSync(project)
    make(join(project, 'context-manager.json'))
    const { settings, problems } = readSettings({ user, project, over: '' })
    expect(settings.perTurn).toBe(8)
    expect(problems.join('\n')).toMatch(sentence)
  })

  test("a link within the project is followed", () => {
    const project = temporaryFolder('settings-')
    mkdirSync(join(project, '.pi'))
    writeFileSync(join(project, 'shared.json'), '{"perTurn": 3}')
    symlinkSync('../shared.json', join(project, '.pi', 'context-manager.json'))
    expect(readSettings({ user: temporaryFolder('settings-'), project: join(project, '.pi'), over: '' })).toMatchObject({ settings: { perTurn: 3 }, problems: [] })
  })

  test('a project takes precedence over the user, but does not say where data goes or that secrets are recorded', () => {
    const [user, project] = [temporaryFolder('settings-'), temporaryFolder('settings-')]
    writeFileSync(join(user, 'context-manager.json'), '{"perTurn": 8, "redact": true, "store": "/mine.db"}')
    const file = join(project, 'context-manager.json')
    writeFileSync(file, '{"perTurn": 3, "enabled": false, "redact": false, "store": "http://elsewhere:3000"}')
    expect(readSettings({ user, project, over: '{"enabled": true}' })).toEqual({
      settings: { ...DEFAULTS, perTurn: 3, redact: true, store: '/mine.db' },
      given: new Set(['perTurn', 'redact', 'store', 'enabled']),
      problems: [
        `${file}: "redact" can only be switched off in your own settings`,
        `${file}: "store" can only be set in your own settings, because a project must not say where your data goes`,
      ],
    })
    writeFileSync(file, '{"redact": true}')
    expect(readSettings({ user: temporaryFolder('settings-'), project, over: '' }).settings.redact).toBe(true)
  })

  test('the variable takes precedence over the file, field by field', () => {
    const folder = temporaryFolder('settings-')
    writeFileSync(join(folder, 'context-manager.json'), '{"perTurn": 8, "thinking": 5, "other": 1}')
    const file = join(folder, 'context-manager.json')
    expect(readSettings({ user: folder, over: '{"thinking": "keep", "calls": 0}' })).toEqual({
      settings: { ...DEFAULTS, perTurn: 8, thinking: 'keep' },
      given: new Set(['perTurn', 'thinking']),
      problems: [`${file}: there is no setting "other"`, expect.stringMatching(/^CONTEXT_SETTINGS: "calls" must be .*, not 0$/)],
    })
    expect(readSettings({ user: folder, over: '' })).toMatchObject({ settings: { perTurn: 8, thinking: 5 } })
    expect(readSettings({ user: folder, over: '{' })).toEqual({
      settings: { ...DEFAULTS, perTurn: 8, thinking: 5 },
      given: new Set(['perTurn', 'thinking']),
      problems: [expect.any(String), expect.stringContaining('CONTEXT_SETTINGS is not JSON')],
    })
  })
})

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
    registerTools(pi as any, () => {
      throw new Error('not open')
    }, namesBeside(new Set()))
    const characters = words.join('').length
    expect(words).toHaveLength(5)
    expect(characters / 4).toBeLessThan(600)
    expect(TOOLS_TOKENS).toBe(Math.ceil(characters / 4))
  })
})

describe('ways back', () => {
  test.each([
    ['id=05f49740', '05f49740'],
    ['@id=05f49740', '05f49740'],
    ['id=05f49740@17', '05f49740@17'],
    ['id=05f4', undefined],
    ['id=05f49740.txt', undefined],
    ['src/id=05f49740', undefined],
    ['id=05f49740@', undefined],
    ['a.txt', undefined],
  ])('the path %j names %j', (path, name) => expect(objectIn(path)).toBe(name))

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

  test('a file that is gone, too large, or a folder leaves what is shown', async () => {
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
  const entry = (id: string, parentId: string | null, more: object): SessionEntry =>
    ({ id, parentId, timestamp: '', ...more }) as SessionEntry
  const user = (id: string, parentId: string | null) =>
    entry(id, parentId, { type: 'message', message: { role: 'user', content: id, timestamp: 0 } })
  const branch = (entries: SessionEntry[], leaf: string | null): Branch => ({
    getLeafId: () => leaf,
    getEntry: (id) => entries.find((one) => one.id === id),
  })

  test('what is new follows the last one, oldest first', () => {
    const entries = [user('a', null), user('b', 'a'), user('c', 'b'), user('x', 'a')]
    const ids = (last: string | null, leaf: string | null) =>
      entriesAfter(branch(entries, leaf), last)?.map((one) => one.id)
    expect(ids(null, 'c')).toEqual(['a', 'b', 'c'])
    expect(ids('a', 'c')).toEqual(['b', 'c'])
    expect(ids('c', 'c')).toEqual([])
    expect(ids(null, null)).toEqual([])
    expect(ids('b', 'x')).toBeUndefined()
    expect(ids('gone', 'c')).toBeUndefined()
  })

  test('only what Pi sends is a message', () => {
    const bash = (more: object) =>
      entry('b', null, { type: 'message', message: { role: 'bashExecution', command: 'x', ...more } })
    expect(messageOf(user('a', null))).toMatchObject({ role: 'user' })
    expect(messageOf(bash({}))).toMatchObject({ role: 'bashExecution' })
    expect(messageOf(bash({ excludeFromContext: true }))).toBeUndefined()
    expect(messageOf(entry('s', null, { type: 'message', message: { role: 'system' } }))).toBeUndefined()
    expect(messageOf(entry('m', null, { type: 'model_change' }))).toBeUndefined()
    expect(
      messageOf(entry('c', null, { type: 'custom_message', customType: 't', content: 'x', display: true })),
    ).toEqual({
      role: 'custom',
      customType: 't',
      content: 'x',
    })
    const projection = [
      { sourceEntry: user('a', null), messages: [{ role: 'system' }, { role: 'user', content: 'x' }] },
    ]
    expect(messagesOf(projection as any)).toEqual([{ key: 'a', message: { role: 'user', content: 'x' } }])
  })

  test('a replaced result keeps its images, a replaced answer all but what the edit names', () => {
    const image = { type: 'image', data: 'x', mimeType: 'image/png' }
    const result = { role: 'toolResult', content: [{ type: 'text', text: 'long' }, image] } as any
    const to = (text?: string) =>
      replacementOf(
        { kind: 'result', key: 'r', object: 'o', ...(text === undefined ? {} : { text }) },
        result,
      )
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
    const edit = (calls: any[], texts: any[] = []) =>
      replacementOf({ kind: 'message', key: 'm', calls, texts }, answer)
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

  test('the points of a branch, the last one first, past what only looks like one', () => {
    const point = (id: string, data: unknown) => entry(id, null, { type: 'custom', customType: POINT, data })
    const [first, last] = [{ session: 's', tx: 3 }, { session: 's', tx: 7 }]
    expect([...points([])]).toEqual([])
    const branch = [point('a', first), point('b', { session: 's' }), point('c', last), point('d', null), user('e', 'd')]
    expect([...points(branch)]).toEqual([
      { index: 2, point: last },
      { index: 0, point: first },
    ])
  })

  test.each([
    ['toolcall_ref id=ab tool=bash status=ok', true],
    ['toolcall_ref id=ab tool=bash status=fail', true],
    ['toolcall_ref id=ab tool=bash status=ok\nbash make id=cd', true],
    ['toolcall_ref id=ab tool=bash status=fail -> 3 failed: a.test.ts (exit 1)', true],
    ['toolcall_ref id=ab tool=bash status=ok -> 3 lines\nbash make id=cd', true],
    ['toolcall_ref id=ab tool=bash status=ok and more', false],
    ['toolcall_ref id=ab tool=bash status=okay', false],
    ['see toolcall_ref id=ab tool=bash status=ok', false],
  ])('the reference %j: %s', (text, is) => expect(isReference(text)).toBe(is))

  test('the header of a result', () => {
    expect(readHeader('id=0123abcd\ntext')).toEqual({ id: '0123abcd', length: 12 })
    expect(readHeader('id=ab')).toBeUndefined()
    expect(readHeader('id=0123abcd is its name')).toBeUndefined()
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
  const branch = (entries: SessionEntry[]): Branch => ({
    getLeafId: () => entries.at(-1)?.id ?? null,
    getEntry: (id) => entries.find((one) => one.id === id),
  })

  test('what was billed wins over what a catalogue says, and all requests count', () => {
    expect(billOf([])).toEqual({ cost: 0, isBilled: false, perCatalogueDollar: 1, cachedShare: undefined })
    expect(billOf([answer('a', null, estimate), warm])).toEqual({
      cost: 12,
      isBilled: false,
      perCatalogueDollar: 1,
      cachedShare: 0.75,
    })
    expect(billOf([answer('a', null, charged)])).toMatchObject({ cost: 3, isBilled: true, perCatalogueDollar: 0.5 })
    expect(billOf([answer('a', null, charged), warm])).toMatchObject({ cost: 9, isBilled: false, perCatalogueDollar: 0.5 })
  })

  test('the last answer, and how long its cache was kept warm', () => {
    const failed = answer('e', 'w', estimate, { stopReason: 'error' })
    expect(lastAnswer(branch([]))).toBeUndefined()
    const first = answer('a', null, estimate)
    expect(lastAnswer(branch([first]))).toEqual({ provider: 'p', model: 'm', atMs: 1000, warmedMs: undefined })
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
})

describe('failures', () => {
  test('what takes too long is given up with a sentence', async () => {
    await expect(bounded(new Promise(() => {}), 1, 'waiting')).rejects.toThrow(
      'waiting took longer than 0.001 s',
    )
    expect(await bounded(Promise.resolve(1), 1000, 'waiting')).toBe(1)
    await expect(bounded(Promise.reject(new Error('own')), 1000, 'waiting')).rejects.toThrow('own')
  })

  test('three in a row of one kind are too many', () => {
    const failures = new Failures()
    expect([failures.failure('a'), failures.failure('b'), failures.failure('a')]).toEqual([false, false, false])
    failures.success('a')
    expect([failures.failure('a'), failures.failure('a'), failures.failure('a')]).toEqual([false, false, true])
  })

  test('what is nested too deep for the engine becomes text at its depth, and loses nothing', () => {
    const nested = (levels: number): unknown => (levels === 0 ? { last: 1 } : [nested(levels - 1)])
    expect(flattened(nested(20))).toEqual(nested(20))
    let value = flattened({ a: nested(200), b: 1 }) as any
    expect(value.b).toBe(1)
    value = value.a
    let levels = 1
    while (typeof value === 'object') {
      value = value[0]
      levels += 1
    }
    expect(levels).toBe(60)
    expect(JSON.parse(value)).toEqual(nested(200 - 59))
  })

  test.each([
    [Object.assign(new Error('no'), { code: 'IO' }), true, 'no (IO)'],
    [Object.assign(new Error('no'), { code: 'STORE_FULL' }), false, 'no (STORE_FULL)'],
    [new Error('no'), false, 'no'],
    ['text', false, 'text'],
    [null, false, 'null'],
  ])('%s', (error, passing, text) => {
    expect(isPassing(error)).toBe(passing)
    expect(sentence(error)).toBe(text)
  })
})

describe('texts for the person', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [1000, '1.0k'],
    [9949, '9.9k'],
    [9951, '10k'],
    [41_234, '41k'],
    [999_499, '999k'],
    [1_250_000, '1.3M'],
    [-2500, '-2.5k'],
  ])('%d tokens are %s', (count, text) => expect(short(count)).toBe(text))

  const receipt = {
    items: 12,
    removedTokens: 61_000,
    cost: 9000,
    gain: 6100,
    paysBackAfterCalls: 2,
    reason: 'pays' as const,
  }

  test('receipts', () => {
    expect(receiptLine(receipt)).toBe('12 items, 61k tokens removed, cost 9.0k input tokens, pays back in 2 calls')
    expect(receiptLine({ ...receipt, reasoningLost: 14 })).toBe('12 items, 61k tokens removed, reasoning of 14 steps lost, cost 9.0k input tokens, pays back in 2 calls')
    expect(receiptLine({ ...receipt, reasoningLost: 1 }, true)).toBe('12 items, 61k tokens, reasoning of 1 step lost, pays back in 2 calls')
    expect(receiptLine({ ...receipt, items: 1, cost: 0 })).toBe('1 item, 61k tokens removed, free')
    const { paysBackAfterCalls: _, ...never } = receipt
    expect(receiptLine(never)).toContain('never pays back')
  })

  const output = { id: 'ab', tool: 'read', name: 'a.ts', form: 'full' as const, tokens: 2400, inactive: false, pinned: true, failed: false, turn: 1, callsAgo: 4 }
  const report: Report = {
    shares: [
      { name: 'tool outputs', tokens: 30_960 },
      { name: 'messages', tokens: 10_000 },
      { name: 'references', tokens: 40 },
    ],
    outputs: [
      output,
      { ...output, id: 'ef', form: 'excerpt', pinned: false, inactive: true },
      { ...output, id: 'cd', name: 'bash', tool: 'bash', form: 'reference', pinned: false },
    ],
    contextTokens: 41_000,
    staleTokens: 2000,
    contextWindow: 200_000,
    active: 3,
    objects: 20,
    cachedShare: 0.943,
    cost: 1.16,
    isBilled: false,
    tokenPrice: 0,
    saved: 0.84,
    savedTokens: 280_000,
    uncounted: undefined,
    receipts: [receipt],
    off: true,
    store: '/data/context.db',
    storeHint: undefined,
  }

  test('the report', () => {
    expect(reportLines(report)).toEqual([
      'Context: 41k of 200k tokens (21 %), off: nothing collapses',
      '  tool outputs    31k  16 %',
      '  messages        10k   5 %',
      '  references      <1k  <1 %',
      'Saved $0.84, 42 % against plain Pi',
      'Cost so far $1.16 · last call 94 % from the cache',
      '  Roll: 12 items, 61k tokens removed, cost 9.0k input tokens, pays back in 2 calls',
      'Outputs: 2 in the window, 1 collapsed to references',
      '  a.ts  full, pinned, 2.4k tokens, read, id=ab',
      '  a.ts  excerpt, inactive, 2.4k tokens, read, id=ef',
      'Old enough to collapse: 2.0k tokens; /context roll does it now',
      'Store: /data/context.db',
    ])
  })

  test('a store of 2 GiB comes with the command that makes it smaller, in one line', async () => {
    const path = join(temporaryFolder('large-'), 'context.db')
    expect([await bytesOf(path), sizeHint(await bytesOf(path))]).toEqual([0, undefined])
    writeFileSync(path, '')
    // Its length counts; it takes no room.
    truncateSync(path, 2 * 1024 ** 3 - 1)
    expect(sizeHint(await bytesOf(path))).toBeUndefined()
    writeFileSync(`${path}-wal`, 'x')
    const storeHint = sizeHint(await bytesOf(path))
    expect(storeHint).toBe('The store takes 2.0 GiB: "npx pi-context-manager prune --older-than 90d --dry-run" shows what could be removed')
    expect(reportLines({ ...report, storeHint }).slice(-2)).toEqual(['Store: /data/context.db', storeHint])
  })

  test.each<[string, Partial<Report>, string]>([
    ['nothing yet', { savedTokens: 0, saved: 0, receipts: [] }, 'Nothing saved yet: nothing has been worth collapsing.'],
    ['a roll just now', { savedTokens: 0, saved: 0 }, 'Nothing saved yet: what has collapsed shows at the next call.'],
    ['a provider that counts nothing', { savedTokens: 0, saved: 0, uncounted: 'the provider reports no token counts' }, 'What was saved is not known: the provider reports no token counts.'],
    ['a model without prices', { saved: undefined }, 'Saved 280k input tokens against plain Pi'],
    ['a roll that has not paid back', { saved: -0.02, savedTokens: -6000, cost: 0.42 }, 'Cost $0.02, 5 % more than plain Pi'],
    ['the same without prices', { saved: undefined, savedTokens: -664 }, 'Cost 664 input tokens more than plain Pi'],
    ['less than a cent', { saved: -0.002, savedTokens: -664 }, 'Cost 664 input tokens more than plain Pi'],
  ])('savings: %s', (_name, some, line) => {
    expect(savedLine({ ...report, ...some })).toBe(line)
  })

  test('a low share from the cache points to the explanation', () => {
    expect(costLine({ ...report, cachedShare: 0.2 })).toBe('Cost so far $1.16 · last call 20 % from the cache (/context why)')
    expect(costLine({ ...report, cost: 0, cachedShare: undefined })).toBeUndefined()
  })
})
