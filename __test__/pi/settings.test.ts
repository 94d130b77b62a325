/** The settings of the extension. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { pathsOf } from '../../extensions/mounts.ts'
import { FILESYSTEM_ID_WANTED, MOUNTS_WANTED } from '../../lib/core/index.ts'
import { longWait, placeOf, storeLine } from '../../extensions/place.ts'
import type { XtdbPlace } from '../../extensions/place.ts'
import { checkSettings, DEFAULTS, readSettings } from '../../extensions/settings.ts'
import { cleanUp, temporaryFolder } from '../../rig/pi.ts'
import { NO_FILESYSTEM_IDS } from '../core/setup.ts'

afterEach(cleanUp)

describe('settings', () => {
  test.each<[string, unknown, object, string[]]>([
    ['nothing', {}, {}, []],
    ['all of them', { ...DEFAULTS, store: '/data/x.db', perTurn: 2, tools: 'observe' }, { store: '/data/x.db', perTurn: 2, tools: 'observe' }, []],
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
        ['"store" must be an absolute path, the http address of an XTDB node, or { "url", "urls", "journal" }, ' + `not ${JSON.stringify(store)}`],
      ],
    ),
    ['a word for a switch', { enabled: 'no' }, {}, ['"enabled" must be true or false, not "no"']],
    ['texts that stay', { thinking: 'keep', calls: 30 }, { thinking: 'keep', calls: 30 }, []],
    ['a debt cap', { debtCap: 0.1 }, { debtCap: 0.1 }, []],
    ['no debt cap', { debtCap: 'none' }, { debtCap: 'none' }, []],
    ['a debt cap below 0', { debtCap: -1 }, {}, ['"debtCap" must be "none" or a share of what was spent, 0 or more, not -1']],
    ['a stay of no calls', { prose: 0 }, {}, ['"prose" must be "keep" or a whole number of model calls of at least 1, not 0']],
    ['too small a window', { turnsBack: 0 }, {}, ['"turnsBack" must be a whole number of at least 1, not 0']],
    ['no lifetime', { cacheLifetimeSeconds: -1 }, {}, ['"cacheLifetimeSeconds" must be a number of seconds above 0, not -1']],
    ['texts that never collapse', { neverCollapse: { tools: ['todo'], files: ['docs/**'] } }, { neverCollapse: { tools: ['todo'], files: ['docs/**'] } }, []],
    ...[[], { tools: 'todo' }, { files: [''] }, { paths: [] }].map((value): [string, unknown, object, string[]] => [
      `no list of what never collapses: ${JSON.stringify(value)}`,
      { neverCollapse: value },
      {},
      [`"neverCollapse" must be { "tools": names, "files": globs }, each a list of texts, not ${JSON.stringify(value)}`],
    ]),
    [
      'mounts',
      { mounts: [{ agentPrefix: '/workspace', canonicalPrefix: '~/project/' }], filesystemId: 'container' },
      { mounts: [{ agentPrefix: '/workspace', canonicalPrefix: join(homedir(), 'project') }], filesystemId: 'container' },
      [],
    ],
    ...[
      {},
      [{}],
      [{ agentPrefix: 'w', canonicalPrefix: '/p' }],
      [{ agentPrefix: '/w', canonicalPrefix: 'p' }],
      [{ agentPrefix: '/w', canonicalPrefix: '~other' }],
      ...NO_FILESYSTEM_IDS.map((filesystemId) => [{ agentPrefix: '/w', canonicalPrefix: '/p', filesystemId }]),
      [{ agentPrefix: '/w', canonicalPrefix: '/p', readOnly: true }],
    ].map((mounts): [string, unknown, object, string[]] => [
      `mounts that can't be: ${JSON.stringify(mounts)}`,
      { mounts },
      {},
      [expect.stringContaining(`"mounts" must be ${MOUNTS_WANTED}, not ${JSON.stringify(mounts).slice(0, 200)}`)],
    ]),
    ...[
      ['/w', '/w/'],
      ['/', '//'],
    ].map(([one = '', other = '']): [string, unknown, object, string[]] => [
      `two mounts for ${one}`,
      {
        mounts: [
          { agentPrefix: one, canonicalPrefix: '/p' },
          { agentPrefix: other, canonicalPrefix: '/q' },
        ],
      },
      {},
      [`"mounts" has two mounts for "${one}" inside of the sandbox; leave one of them out`],
    ]),
    ...['[', 'docs/[ab', '*.{ts,js', '[z-a]', 'a(b', 'a]'].map((glob): [string, unknown, object, string[]] => [
      `a glob ${glob}`,
      { neverCollapse: { files: ['docs/**', glob] } },
      {},
      [`"neverCollapse" has a glob with a bracket that is never closed, or a range that ends before it begins: ${JSON.stringify(glob)}`],
    ]),
    ...['docs/[a-z]*.{ts,js}', '\\[x', '!(a).md', '**/*'].map((glob): [string, unknown, object, string[]] => [
      `a glob ${glob}`,
      { neverCollapse: { files: [glob] } },
      { neverCollapse: { files: [glob] } },
      [],
    ]),
    ...NO_FILESYSTEM_IDS.map((filesystemId): [string, unknown, object, string[]] => [
      `no filesystem ID: ${JSON.stringify(filesystemId).slice(0, 20)}`,
      { filesystemId },
      {},
      [expect.stringContaining(`"filesystemId" must be ${FILESYSTEM_ID_WANTED}, not `)],
    ]),
    ...['f', "the team's drive", 'x'.repeat(512)].map((filesystemId): [string, unknown, object, string[]] => [
      `a filesystem ID: ${filesystemId.slice(0, 20)}`,
      { filesystemId },
      { filesystemId },
      [],
    ]),
    ['a holdout', { holdout: 0.1 }, { holdout: 0.1 }, []],
    ['too large a holdout', { holdout: 10 }, {}, ['"holdout" must be a share of sessions from 0 to 1, not 10']],
    ['a name inherited from Object', { toString: 1 }, {}, ['there is no setting "toString"']],
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
    ['a file in the home', true, node, { CONTEXT_STORE_PATH: '~/y.db' }, { kind: 'sqlite', path: join(homedir(), 'y.db') }, join(homedir(), 'y.db')],
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
    expect(storeLine('', waiting)).toBe(`xtdb http://db2:3000, 2 transactions waiting since ${since}, no answer, last error: no answer in time`)
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
    expect(readSettings({ user: other })).toEqual({
      settings: DEFAULTS,
      given: new Set(),
      problems: [`${join(other, 'context-manager.json')} is not a file, so no settings are read from it`],
    })
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

  test('a link within the project is followed', () => {
    const project = temporaryFolder('settings-')
    mkdirSync(join(project, '.pi'))
    writeFileSync(join(project, 'shared.json'), '{"perTurn": 3}')
    symlinkSync('../shared.json', join(project, '.pi', 'context-manager.json'))
    expect(readSettings({ user: temporaryFolder('settings-'), project: join(project, '.pi'), over: '' })).toMatchObject({
      settings: { perTurn: 3 },
      problems: [],
    })
  })

  test('a project mounts only its own folder and the paths in it', () => {
    const [user, root] = [temporaryFolder('settings-'), temporaryFolder('settings-')]
    const project = join(root, '.pi')
    mkdirSync(project)
    const mounted = (canonicalPrefix: string) => {
      writeFileSync(join(project, 'context-manager.json'), JSON.stringify({ mounts: [{ agentPrefix: '/w', canonicalPrefix }] }))
      return readSettings({ user, project, over: '' })
    }
    symlinkSync(homedir(), join(root, 'link'))
    for (const own of [root, join(root, 'src'), `${root}/`]) expect(mounted(own)).toMatchObject({ problems: [], settings: { mounts: [{ agentPrefix: '/w' }] } })
    for (const other of [homedir(), '/', join(root, '..'), `${root}-other`, join(root, 'link')]) {
      const { settings, problems } = mounted(other)
      expect([settings.mounts, problems]).toEqual([[], [expect.stringContaining('can only name its own folder and what is in it')]])
    }
  })

  test.each([
    ['no mounts', [], '/p/src', { cwd: '/p/src', home: '/home/me' }],
    ['the folder itself', [['/w', '/p']], '/p', { cwd: '/w' }],
    ['below it', [['/w', '/p']], '/p/src', { cwd: '/w/src' }],
    [
      'the nearest one',
      [
        ['/w', '/p'],
        ['/s', '/p/src'],
      ],
      '/p/src/a',
      { cwd: '/s/a' },
    ],
    ['the root of the sandbox', [['/', '/p']], '/p/src', { cwd: '/src' }],
    ['a similar name', [['/w', '/p']], '/paths', { cwd: '/paths' }],
  ])('the working directory as the agent sees it: %s', (_name, pairs, cwd, expected) => {
    const mounts = pairs.map(([agentPrefix = '', canonicalPrefix = '']) => ({ agentPrefix, canonicalPrefix }))
    expect(pathsOf(cwd, '/home/me', { mounts, filesystemId: undefined })).toEqual(mounts.length === 0 ? expected : { ...expected, mounts })
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
