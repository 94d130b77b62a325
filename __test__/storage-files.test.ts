/** Files: names that stay inside, whole or absent, several processes, and only what is ours removed. */
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ContextManager, type IFileSystem } from '../lib/storage/index.ts'
import { random } from '../rig/random.ts'
import { child, directory, ended, memoryFileSystem } from './storage/setup.ts'

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}_[0-9a-f]{6}_\d{13}_\d+_[0-9a-z]{4}\.json$/

describe('names', () => {
  const nasty = [
    '../../etc/passwd',
    '/etc/passwd',
    '..',
    '.',
    '',
    'a\0b',
    'x'.repeat(300),
    '../'.repeat(100),
    'C:\\Windows',
    'CON',
    'nul',
    'COM1.txt',
    'a/b',
    'a\\b',
    '.hidden',
    '-rf',
    '~',
    '$HOME',
    'a\nb',
    '\u202e',
    'поиск',
    '😀',
    '%2e%2e%2f',
    'a*?<>|"',
    'trailing.',
    'trailing ',
  ]

  test.each([
    ['local files', false],
    ['a file system of the caller', true],
  ])('no tool and no argument leaves the directory: %s', async (_, own) => {
    const parent = await directory()
    const contextDir = join(parent, 'context')
    const fs = memoryFileSystem()
    const manager = new ContextManager({ contextDir, durability: 'process', ...(own && { fileSystem: fs }) })
    const { below, pick } = random(1)
    const pieces = ['..', '/', '\\', '\0', 'a', '_', '-', '.', '\n', 'é', '😀', '\ud800', ' ', 'CON', '%00']
    const names = [...nasty, ...Array.from({ length: 300 }, () => Array.from({ length: below(40) }, () => pick(pieces)).join(''))]
    for (const name of names) {
      const filepath = await manager.saveContext(name, { path: name, [name]: name }, name)
      expect(dirname(filepath), name).toBe(contextDir)
      expect(basename(filepath), name).toMatch(NAME)
      const [context] = await manager.loadContexts([filepath])
      expect([context!.toolName, context!.args, context!.result], name).toEqual([name, { path: name, [name]: name }, name])
    }
    const all = own ? [...fs.files.keys()].map((file) => basename(file)) : await readdir(contextDir)
    expect(all.toSorted()).toEqual(
      manager
        .getAllPointers()
        .map(({ filename }) => filename)
        .toSorted(),
    )
    expect(await readdir(parent)).toEqual(own ? [] : ['context'])
  })
})

test('files are private, directories too, and nothing but the files is left', async () => {
  const parent = await directory()
  const before = process.umask(0)
  try {
    const manager = new ContextManager({ contextDir: join(parent, 'a', 'b') })
    const filepath = await manager.saveContext('t', {}, 1)
    const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)
    expect([await mode(filepath), await mode(dirname(filepath)), await mode(join(parent, 'a'))]).toEqual(['600', '700', '700'])
    expect(await readdir(dirname(filepath))).toEqual([basename(filepath)])
  } finally {
    process.umask(before)
  }
})

test('a file system of the caller gets a temporary file, flushed and private, and then a rename', async () => {
  const calls: unknown[][] = []
  const fs = memoryFileSystem()
  const spy = new Proxy<IFileSystem>(fs, {
    get:
      (target, key: keyof IFileSystem) =>
      (...args: never[]) => {
        calls.push([key, ...args])
        return (target[key] as (...args: never[]) => unknown)(...args)
      },
  })
  const manager = new ContextManager({ contextDir: '/c', fileSystem: spy })
  const filepath = await manager.saveContext('t', {}, 1)
  const temporary = `/c/.${basename(filepath)}.tmp`
  expect(calls).toEqual([
    ['mkdir', '/c', { recursive: true, mode: 0o700 }],
    ['writeFile', temporary, expect.stringContaining('"result":1'), { encoding: 'utf8', flag: 'wx', mode: 0o600, flush: true }],
    ['stat', filepath],
    ['rename', temporary, filepath],
  ])
})

test.each([
  ['ENOSPC', 'STORE_FULL'],
  ['EACCES', 'IO'],
])('%s of a file system is %s, and leaves no pointer and no file', async (cause, code) => {
  const fs = memoryFileSystem()
  const refuse = async () => {
    throw Object.assign(new Error('refused'), { code: cause })
  }
  for (const call of ['writeFile', 'rename', 'mkdir'] as const) {
    const manager = new ContextManager({ contextDir: '/c', fileSystem: { ...fs, [call]: refuse } })
    await expect(manager.saveContext('t', {}, 1)).rejects.toMatchObject({ code, name: 'StorageError', message: expect.stringContaining('/c') })
    expect([manager.size, fs.files.size]).toEqual([0, 0])
  }
  const manager = new ContextManager({ contextDir: '/c', fileSystem: { ...fs, unlink: refuse } })
  await manager.saveContext('t', {}, 1)
  await expect(manager.clear()).rejects.toMatchObject({ code })
  expect(manager.size).toBe(1)
})

test('a refusal of the system has a code, leaves no pointer, and saving works again afterwards', async () => {
  const parent = await directory()
  await writeFile(join(parent, 'context'), 'in the way')
  const manager = new ContextManager({ contextDir: join(parent, 'context') })
  await expect(manager.saveContext('t', {}, 1)).rejects.toMatchObject({ code: 'IO', message: expect.stringContaining('context') })
  await expect(manager.restorePointers()).rejects.toMatchObject({ code: 'IO' })
  expect(manager.size).toBe(0)
  expect(await readFile(join(parent, 'context'), 'utf8')).toBe('in the way')
  await rm(join(parent, 'context'))
  await manager.saveContext('t', {}, 1)
  expect(manager.size).toBe(1)
})

test('a directory that may not be written is an IO error', async ({ skip }) => {
  skip(process.getuid?.() === 0, 'root may write anywhere: run this test as another user')
  const contextDir = await directory()
  await chmod(contextDir, 0o500)
  await expect(new ContextManager({ contextDir }).saveContext('t', {}, 1)).rejects.toMatchObject({ code: 'IO' })
})

test('clearing removes only the files of the class, and interrupted saves', async () => {
  const contextDir = await directory()
  const manager = new ContextManager({ contextDir })
  const filepath = await manager.saveContext('t', {}, 1)
  const foreign = ['notes.json', 'readFile.json', '.env', 't_abc_1_0_x.json', `${basename(filepath)}.bak`, '.x.json.tmp']
  for (const name of foreign) await writeFile(join(contextDir, name), 'mine')
  await mkdir(join(contextDir, 'sub'))
  await writeFile(join(contextDir, 'sub', basename(filepath)), 'mine')
  await symlink(join(contextDir, 'notes.json'), join(contextDir, basename(filepath).replace(/....\.json/u, 'link.json')))
  await writeFile(join(contextDir, `.${basename(filepath)}.tmp`), 'half')
  await manager.clear()
  const left = [...foreign, 'sub', expect.stringContaining('link.json')]
  expect((await readdir(contextDir)).toSorted()).toEqual(expect.arrayContaining(left))
  expect(await readdir(contextDir)).toHaveLength(left.length)
  expect(await readFile(join(contextDir, 'sub', basename(filepath)), 'utf8')).toBe('mine')
})

test('links, pipes and directories with a proper name are not read', async () => {
  const contextDir = await directory()
  const secret = join(await directory(), 'secret.json')
  const manager = new ContextManager({ contextDir })
  const filepath = await manager.saveContext('t', {}, 1)
  await writeFile(secret, await readFile(filepath, 'utf8'))
  const named = (random_: string) => filepath.replace(/....\.json$/u, `${random_}.json`)
  await symlink(secret, named('link'))
  await mkdir(named('dirs'))
  const { execFileSync } = await import('node:child_process')
  execFileSync('mkfifo', [named('pipe')])
  expect(await manager.loadContexts([named('link'), named('dirs'), named('pipe'), filepath])).toHaveLength(1)
  expect(await new ContextManager({ contextDir }).restorePointers()).toBe(1)
})

test('two processes on one directory lose nothing and take no name twice', async () => {
  const contextDir = await directory()
  const script = (who: string) => `
    const manager = new ContextManager({ contextDir: dir })
    const saves = Array.from({ length: 150 }, (_, n) => manager.saveContext('same', {}, { who: '${who}', n }))
    process.stdout.write(JSON.stringify(await Promise.all(saves)))`
  const children = await Promise.all([child(script('a'), contextDir), child(script('b'), contextDir)])
  const outcomes = await Promise.all(children.map(ended))
  expect(outcomes.map(({ end }) => end)).toEqual([0, 0])
  const reader = new ContextManager({ contextDir })
  const seen = new Set<string>()
  for (const [i, who] of ['a', 'b'].entries()) {
    const paths = JSON.parse(outcomes[i]!.output) as string[]
    const results = (await reader.loadContexts(paths)).map(({ result }) => result)
    expect(results).toEqual(Array.from({ length: 150 }, (_, n) => ({ who, n })))
    paths.forEach((path) => seen.add(path))
  }
  expect(seen.size).toBe(300)
  expect(await reader.restorePointers()).toBe(300)
  expect(await readdir(contextDir)).toHaveLength(300)
})

test('another process may clear while this one saves: every save succeeds or is cleared whole', async () => {
  const contextDir = await directory()
  const clearing = await child(
    `const manager = new ContextManager({ contextDir: dir })
     process.stdout.write('ready')
     for (;;) await manager.clear()`,
    contextDir,
  )
  await new Promise((resolve) => clearing.stdout!.once('data', resolve))
  const manager = new ContextManager({ contextDir, durability: 'process' })
  const paths = await Promise.all(Array.from({ length: 400 }, (_, n) => manager.saveContext('t', { n }, 'x'.repeat(10_000))))
  const over = ended(clearing)
  clearing.kill('SIGKILL')
  await over
  for (const { result } of await manager.loadContexts(paths)) expect(result).toBe('x'.repeat(10_000))
  expect(manager.size).toBe(400)
})

test('kill -9 at any time leaves no half file: all acknowledged files are there, and all files are whole', async () => {
  const contextDir = await directory()
  const script = `
    const manager = new ContextManager({ contextDir: dir })
    for (let n = 0; ; n += 1) {
      const saves = [1, 2, 3, 4].map((i) => manager.saveContext('t', { n, i }, String(i).repeat(200_000 * i)))
      for (const save of saves) save.then((path) => process.stdout.write(path + '\\n'))
      await Promise.all(saves)
    }`
  const { below } = random(9)
  let acknowledged = 0
  for (let round = 0; round < 12; round += 1) {
    const saving = await child(script, contextDir)
    let output = ''
    const enough = 1 + below(12)
    saving.stdout!.on('data', (data) => {
      output += String(data)
      if (output.split('\n').length > enough) saving.kill('SIGKILL')
    })
    await new Promise((resolve) => saving.on('close', resolve))
    const reader = new ContextManager({ contextDir })
    const paths = output.split('\n').slice(0, -1)
    acknowledged += paths.length
    const loaded = await reader.loadContexts(paths)
    expect(loaded).toHaveLength(paths.length)
    const debug: unknown[] = []
    const all = new ContextManager({ contextDir, onDebug: (message, data) => debug.push(message, data) })
    await all.restorePointers()
    const everything = await all.loadContexts(all.getAllPointers().map(({ filepath }) => filepath))
    expect(everything).toHaveLength(all.size)
    for (const { args, result } of everything) expect(result).toBe(String(args['i']).repeat(200_000 * (args['i'] as number)))
    expect(debug).toEqual([])
    await reader.clear()
    expect(await readdir(contextDir)).toEqual([])
  }
  expect(acknowledged).toBeGreaterThan(12)
})

test('autoCleanup removes the files when the process exits, and not those of others', async () => {
  const contextDir = await directory()
  const manager = new ContextManager({ contextDir })
  await manager.saveContext('t', {}, 'stays')
  const script = `
    const manager = new ContextManager({ contextDir: dir, autoCleanup: true })
    for (let n = 0; n < 3; n += 1) process.stdout.write(await manager.saveContext('t', {}, n) + '\\n')
    process.exit(3)`
  const { end, output } = await ended(await child(script, contextDir))
  expect([end, output.split('\n').length]).toEqual([3, 4])
  expect(await readdir(contextDir)).toEqual([manager.getAllPointers()[0]!.filename])
})

test('an open instance keeps no process alive', async () => {
  const script = `
    const manager = new ContextManager({ contextDir: dir, autoCleanup: true, cacheBytes: 1e6 })
    await manager.saveContext('t', {}, 1)`
  expect((await ended(await child(script, await directory()))).end).toBe(0)
})
