/** The names of sessions: short ones that stay good and that every command takes, and titles in the user's own words. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { billsFile } from '../lib/gateway/bills.ts'
import { shortened } from '../lib/ui/names.ts'
import { ContextManager, Store } from '../lib/index.ts'
import { folder } from './core/setup.ts'
import { AnthropicLoop, gatewayTo, long } from './gateway/support.ts'
import { cli, fixture } from './replay/support.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'

afterEach(cleanUp)

describe('short names', () => {
  test.each<[string[], string[]]>([
    [['claude-code:9f3a1b2c-0000'], ['claude-code:9f3a1b2']],
    [
      ['claude-code:9f3a1b2c-0000', 'claude-code:d0000000-0000'],
      ['claude-code:9f3a1b2', 'claude-code:d000000'],
    ],
    [
      ['codex:019e7777-0001', 'codex:019e7777-0002'],
      ['codex:019e7777-0001', 'codex:019e7777-0002'],
    ],
    [
      ['opencode:ses_2f', 'claude-code:2'],
      ['opencode:ses_2f', 'claude-code:2'],
    ],
    [
      ['01a0c9f2-aaaa', '77777777-bbbb'],
      ['01a0c9f2', '77777777'],
    ],
  ])('%j', (ids, names) => expect(ids.map((id) => shortened(ids).get(id))).toEqual(names))

  test('one that was written down stays good when more sessions come', () => {
    const hex = (n: number): string => ((n * 2654435761) >>> 0).toString(16).padStart(8, '0')
    const ids = Array.from({ length: 400 }, (_, n) => `${n % 2 === 0 ? 'claude-code' : 'codex'}:${hex(n)}-0000`)
    const first = shortened(ids.slice(0, 20))
    for (const [id, name] of first) expect(ids.filter((one) => one.startsWith(name))).toEqual([id])
  })
})

describe('a session of the gateway', () => {
  const ID = '9f3a1b2c-1111-4222-8333-444455556666'
  const REMINDER = { type: 'text', text: "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n</system-reminder>" }

  test("has its user's words, its folder and one name everywhere", async () => {
    const server = await startModelServer(() => 'ok')
    const home = folder()
    const path = join(home, 'context.db')
    const { gateway } = await gatewayTo(server.url, { store: { kind: 'sqlite', path }, billsPath: billsFile({ kind: 'sqlite', path }) })
    const loop = new AnthropicLoop(gateway, ID)
    loop.more = {
      system: [
        { type: 'text', text: 'You are Claude Code.' },
        { type: 'text', text: `# Environment\n - Primary working directory: ${home}/proj\n - Is a git repository: false` },
      ],
    }
    loop.messages.push({ role: 'user', content: [REMINDER, { type: 'text', text: '<div> in the page is not closed, mend it' }] })
    for (let n = 0; n < 30; n += 1) await loop.call('Read', { file_path: `${home}/proj/src/n${n}.ts` }, long(`n${n}`))
    expect(gateway.ledger.sessions[0]!.prompt).toBe('<div> in the page is not closed, mend it')
    expect(gateway.ledger.sessions[0]!.rolls.length).toBeGreaterThan(0)
    await gateway.close()

    const store = await Store.open({ kind: 'sqlite', path })
    const [summary] = await store.sessions()
    await store.close()
    expect(summary).toMatchObject({ id: `claude-code:${ID}`, folder: `${home}/proj`, firstPrompt: '<div> in the page is not closed, mend it' })

    const env = { HOME: home }
    const name = 'claude-code:9f3a1b2'
    expect((await cli(['sessions', '--store', path], env)).stdout).toContain(`  ${name}  Claude Code`)
    expect((await cli(['usage', '--store', path, '--by', 'session'], env)).stdout).toContain(`${name} proj`)
    for (const given of [name, '9f3a1b2', `claude-code:${ID}`]) {
      expect([given, (await cli(['inspect', '--store', path, given], env)).stdout]).toEqual([given, expect.stringContaining(`claude-code:${ID}`)])
      const why = await cli(['why', '--store', path, given], env)
      expect([given, why]).toEqual([
        given,
        { code: 0, stdout: expect.stringMatching(/A\s+roll\s+of\s+ours\s+replaced\s+old\s+outputs\s+by\s+references\./), stderr: '' },
      ])
    }
    const { breaks, calls } = JSON.parse((await cli(['why', '--store', path, name, '--json'], env)).stdout) as { breaks: { cost: number }[]; calls: number }
    expect([calls, breaks.length > 0, breaks.every(({ cost }) => cost > 0)]).toEqual([30, true, true])
    const unknown = await cli(['why', '--store', path, 'claude-code:77'], env)
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("nor the gateway's figures")])
  })
})

test("a session that the gateway meets midway has its user's first words, although outputs came before its texts", async () => {
  const server = await startModelServer(() => 'ok')
  const path = join(folder(), 'context.db')
  const { gateway } = await gatewayTo(server.url, { store: { kind: 'sqlite', path } })
  const loop = new AnthropicLoop(gateway, 'met')
  const past = Array.from({ length: 9 }, (_, n) => [
    { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${n}`, name: 'Bash', input: { command: `cat n${n}` } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${n}`, content: long(`n${n}`) }] },
  ])
  loop.messages.push({ role: 'user', content: [{ type: 'text', text: 'mend the door' }] }, ...past.flat())
  await loop.send()
  await gateway.close()
  const store = await Store.open({ kind: 'sqlite', path })
  const [summary] = await store.sessions()
  await store.close()
  expect(summary?.firstPrompt).toBe('mend the door')
})

describe('where there is nothing of Pi', () => {
  const home = (): string => {
    const path = folder()
    mkdirSync(join(path, '.claude', 'projects', '-p'), { recursive: true })
    return path
  }

  test('a sentence names the folders that were looked into', async () => {
    for (const command of [['usage'], ['replay', '--all']]) {
      const { code, stderr } = await cli(command, { HOME: folder() })
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(
          'there are no sessions in ~/.pi/agent/sessions, ~/.claude/projects, ~/.codex/sessions, ~/.gemini/tmp and ~/.local/share/opencode/opencode.db; name a file or folder, or use an agent first',
        ),
      ])
    }
    expect(await cli(['usage'], { HOME: home() })).toMatchObject({ code: 1, stderr: expect.stringContaining('found no model calls to sum up') })
    expect(await cli(['replay', '--all'], { HOME: home() })).toMatchObject({ code: 1, stderr: 'there is no session to replay\n' })
  })

  test('their names in replay are names that "why" takes', async () => {
    const path = home()
    const id = '0c0ffee0-1111-4222-8333-444455556666'
    for (const [n, one] of [id, id.replace('0c0ffee0', 'decade00')].entries()) {
      // Calls of the same names would be those of one session.
      const text = readFileSync(fixture('claude-code.jsonl'), 'utf8')
        .replaceAll(/"(id|requestId)":"(msg|req)_/g, `"$1":"$2_${n}`)
        .replaceAll(/"sessionId":"[^"]*"/g, `"sessionId":"${one}"`)
      writeFileSync(join(path, '.claude', 'projects', '-p', `${one}.jsonl`), text)
    }
    const { stdout } = await cli(['replay', join(path, '.claude', 'projects')], { HOME: path })
    expect(stdout).toMatch(/ 0c0ffee0 .*\n/)
    expect(await cli(['why', '0c0ffee0'], { HOME: path })).toMatchObject({ stderr: '' })
  })
})

test('forget says before what it would erase, and erases nothing', async () => {
  const home = folder()
  const path = join(home, 'context.db')
  const manager = await ContextManager.open({ sessionId: 's', cwd: home, store: { kind: 'sqlite', path }, watch: false })
  for (let n = 0; n < 5; n += 1) await manager.recordToolcall({ id: `c${n}`, tool: 'bash', args: { command: `x ${n}` }, content: long('same'), status: 'ok' })
  await manager.close()
  const args = ['forget', '--store', path, '--id', 'c0']
  const dry = await cli([...args, '--dry-run'])
  expect(dry).toEqual({ code: 0, stdout: `${path}: would erase 1 text; 5 versions have it and would say so\n`, stderr: '' })
  expect((await cli(['show', '--store', path, 'c3'])).stdout).toBe(long('same'))
  expect((await cli(args)).stdout).toBe(`${path}: erased 1 text; 5 versions now say so\n`)
})
