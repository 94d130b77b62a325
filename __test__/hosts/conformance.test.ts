/** The duties of every host with us, with its real package, against a scripted model. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { HostOptions } from '../../lib/hosts/context.ts'
import { folder, FILESYSTEM, sqlite, write } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import { lossOf } from '../../rig/strict.ts'
import { modelNamed } from '../../lib/models/model.ts'
import { PIXEL } from './conversation.ts'
import { drivers, redact, turns } from './drivers.ts'
import type { Driver, Start } from './drivers.ts'
import { BOUND } from './models.ts'
import { obedient, output, thoughtful } from './script.ts'
import { some } from '../rows.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

const MODEL = { name: 'scripted', contextWindow: 200_000, input: 1, cacheRead: 0.1, cacheWrite: 1.25 }

/** A host with its own context and its own server; in a format that signs reasoning, on a server that binds it. */
async function started(name: string, options: Partial<HostOptions> = {}, more: Partial<Start> = {}) {
  const server = await (more.format === undefined ? startModelServer(obedient) : startModelServer(thoughtful, {}))
  const warnings: string[] = []
  let rolls = 0
  const context: HostOptions = {
    sessionId: 's',
    cwd: folder(),
    store: { kind: 'memory' },
    // Short sessions in which much collapses.
    stay: { weight: 0.3 },
    filesystemId: FILESYSTEM,
    watch: false,
    model: MODEL,
    onWarning: (text) => warnings.push(text),
    onRoll: () => (rolls += 1),
    ...options,
  }
  const driver = await drivers[name]!({ url: server.baseUrl('openai-completions'), context, show: output, ...more })
  onCleanUp(() => driver.context?.close())
  return { server, driver, warnings, rolls: () => rolls }
}

const rounds = (count: number, of = (n: number) => `show n${n}`) => Array.from({ length: count }, (_, n) => of(n))

async function prompts(driver: Driver, texts: readonly string[]): Promise<void> {
  for (const text of texts) await driver.prompt(text)
}

/** Returns the shown text of each call's result, by the output that the tool gave. */
function results(server: ModelServer): { id: string; text: string }[] {
  return server.requests.at(-1)!.messages.flatMap((message) => message.results)
}

function reference(text: string): string | undefined {
  return /^toolcall_ref id=(\S+) tool=\S+ status=ok(?: -> .+)?$/.exec(text)?.[1]
}

const NAMES = Object.keys(drivers)

describe.each(some(NAMES, 2))('%s', (name) => {
  test('each request extends the last one, but for rolls', async () => {
    const { server, driver, rolls, warnings } = await started(name)
    await prompts(
      driver,
      rounds(14, (n) => `show n${n} m${n}+k${n}`),
    )
    server.check()
    expect(rolls()).toBeGreaterThan(0)
    expect(rewritten(server.requests)).toHaveLength(rolls())
    expect(warnings).toEqual([])
  })

  test('everything that collapsed can be brought back byte for byte, by the model', async () => {
    const { server, driver } = await started(name)
    await prompts(
      driver,
      rounds(14, (n) => `show n${n} m${n}`),
    )
    const originals = new Map(
      server.requests
        .flatMap(({ messages }) => messages.flatMap((one) => one.results))
        .filter(({ text }) => !text.includes('id='))
        .map(({ id, text }) => [id, text]),
    )
    const collapsed = results(server).flatMap(({ id, text }) => (reference(text) === undefined ? [] : [[id, reference(text)!] as const]))
    expect(collapsed.length).toBeGreaterThan(8)
    for (const [id, handle] of collapsed) {
      await driver.prompt(`bring ${handle}`)
      const brought = results(server).at(-1)!
      expect(brought.text).toBe(originals.get(id))
    }
  })

  test('a prompt that was replaced and a result that was redacted are sent as they are now', async () => {
    const { server, driver } = await started(name)
    await prompts(driver, [...rounds(8), 'say secret-prompt'])
    redact(driver.history, 'secret-prompt', 'open-prompt')
    redact(driver.history, 'n7 line 20', 'n7 REDACTED')
    await driver.prompt('say on')
    const sent = server.requests
      .at(-1)!
      .messages.map(({ json }) => json)
      .join('\n')
    expect(sent).not.toContain('secret-prompt')
    expect(sent).toContain('open-prompt')
    expect(sent).not.toContain('n7 line 20')
    const shown = [sent]
    const manager = (await driver.context!.manager())!
    expect((await manager.assemble()).text).not.toContain('n7 line 20')
    for (const id of (await manager.sessionSets()).sessionIndex) {
      const text = await driver.context!.activate({ id })
      expect(text).not.toContain('n7 line 20')
      shown.push(text)
    }
    expect(shown.join('\n')).toContain('n7 REDACTED')
  })

  test('messages that were taken out or reordered are gone, or where they are now', async () => {
    const { server, driver } = await started(name)
    await prompts(driver, rounds(8))
    const at = turns(driver)
    driver.history.splice(at[1]!, at[2]! - at[1]!)
    await driver.prompt('say removed')
    const after = server.requests
      .at(-1)!
      .messages.map(({ json }) => json)
      .join('\n')
    expect(after).not.toContain('show n1')
    expect(after).not.toContain('n1 line 1:')
    const [, second, third, fourth] = turns(driver)
    const [one, other] = [driver.history.slice(second!, third!), driver.history.slice(third!, fourth!)]
    driver.history.splice(second!, one.length + other.length, ...other, ...one)
    await driver.prompt('say reordered')
    const order = server.requests.at(-1)!.messages.flatMap(({ role, text }) => (role === 'user' ? [text] : []))
    expect(order.slice(0, 4)).toEqual(['show n0', 'show n3', 'show n2', 'show n4'])
  })

  const other = NAMES[(NAMES.indexOf(name) + 1) % NAMES.length]!
  test.each([name, other])('on one store with %s they share objects, and hear of each other', async (beside) => {
    const [store, cwd] = [sqlite(), folder()]
    const first = await started(beside, { sessionId: 'a', store, cwd })
    const second = await started(name, { sessionId: 'b', store, cwd })
    const path = write(cwd, 'shared.txt', `${'one\n'.repeat(20)}`)
    await prompts(first.driver, [`read ${path}`])
    await prompts(second.driver, [`read ${path}`])
    const [a, b] = [(await first.driver.context!.manager())!, (await second.driver.context!.manager())!]
    const [file] = await a.query({ type: 'file', pathPrefix: path })
    const id = file!['xt/id']
    for (const one of [a, b]) expect((await one.sessionSets()).sessionIndex).toContain(id)
    write(cwd, 'shared.txt', `${'one\n'.repeat(19)}two\n`)
    await a.indexWritten(path)
    await second.driver.prompt('say after')
    const told = second.server.requests
      .at(-1)!
      .messages.map(({ text }) => text)
      .join('\n')
    expect(told).toMatch(/^stale id=\S+ path=.*shared\.txt/m)
    expect((await b.history(id)).length).toBe(2)
  })

  test.each(some([true, 'parts', 'image'] as const, 1, NAMES.indexOf(name)))(
    'an edit beside an unseen change is made and told, and one that meets it is refused once (%s)',
    async (edits) => {
      const cwd = folder()
      const rows = Array.from({ length: 20 }, (_, n) => `row_${n + 1} a`)
      const path = write(cwd, 'shop.txt', `${rows.join('\n')}\n`)
      let row = 15
      const change = (): void => void write(cwd, 'shop.txt', readFileSync(path, 'utf8').replace(`row_${row} a`, `row_${row} b`))
      const show = (of: string): string => (of === 'change' ? (change(), 'changed') : output(of))
      const format = edits !== 'image' ? undefined : name === 'openai-agents' ? 'openai-responses' : 'anthropic-messages'
      const { server, driver, warnings } = await started(
        name,
        { cwd, ...(format && { model: modelNamed(BOUND[format]) }) },
        { edits, show, ...(format && { format }) },
      )
      await prompts(driver, [`read ${path}`, `edit ${path} row_3 ROW_3 1`])
      expect(readFileSync(path, 'utf8')).toContain('ROW_3 a\n')
      const beside = results(server).at(-1)!.text
      expect(beside).toContain('edited')
      expect(beside).toContain('-row_15 a\n+row_15 b\n')
      // This time the change is where the edit would be; once the model has seen it, the edit is its own affair.
      row = 7
      await driver.prompt(`edit ${path} row_7 ROW_7 2`)
      const [refused, made] = results(server)
        .slice(-2)
        .map(({ text }) => text)
      expect(refused).toContain('-row_7 a\n+row_7 b\n')
      expect(refused).toContain('so it was not edited')
      expect(made).toMatch(/^(?:\[.*)?edited/)
      expect(readFileSync(path, 'utf8')).toContain('ROW_7 b\n')
      await driver.prompt('say on')
      expect(
        server.requests
          .at(-1)!
          .messages.map(({ text }) => text)
          .join('\n'),
      ).not.toMatch(/^stale id=/m)
      expect(warnings).toEqual([])
      if (edits !== 'image') return
      // Beside the image, and without a change to what was sent before.
      expect(server.requests.at(-1)!.messages.filter(({ json }) => json.includes(PIXEL))).toHaveLength(2)
      expect(server.requests.every(({ verdict }) => verdict !== undefined)).toBe(true)
      expect(lossOf(server.requests)).toEqual({ refused: 0, lost: 0, lostRunning: 0 })
    },
  )

  test('where the model has no way to bring anything back, nothing collapses, and one warning says so', async () => {
    const { server, driver, rolls, warnings } = await started(name, {}, { withoutRecall: true })
    await prompts(
      driver,
      rounds(14, (n) => `show n${n} m${n}`),
    )
    expect(rolls()).toBe(0)
    expect(results(server).map(({ text }) => text)).toEqual(rounds(14).flatMap((_, n) => [output(`n${n}`), output(`m${n}`)]))
    expect(warnings).toEqual([expect.stringContaining('nothing collapses, because the model has no tool to bring outputs back')])
  })

  test('a store that fails does not reach the host, and is told once', async () => {
    const { server, driver, warnings } = await started(name, { store: { kind: 'sqlite', path: '/dev/null/nothing/context.db' } })
    await prompts(driver, rounds(4))
    server.check()
    expect(results(server).map(({ text }) => text)).toEqual(rounds(4).map((_, n) => output(`n${n}`)))
    expect(warnings).toEqual([expect.stringMatching(/the agent continues without it: .*\((STORE_UNAVAILABLE|IO)\)/)])
  })
})

test('a tool of the OpenAI Agents SDK whose results have a schema is not guarded: nothing of ours would fit it', async () => {
  const cwd = folder()
  const path = write(cwd, 'shop.txt', 'row_1 a\n')
  const show = () => (write(cwd, 'shop.txt', 'row_1 b\n'), 'changed')
  const { server, driver } = await started('openai-agents', { cwd }, { edits: 'schema', format: 'openai-responses', show })
  await prompts(driver, [`read ${path}`, `edit ${path} row_1 ROW_1 1`])
  expect(results(server).at(-1)!.text).toBe('{"done":"edited"}')
})
