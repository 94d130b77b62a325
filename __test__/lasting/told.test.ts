/**
 * Three real clients on one store: two hosts and an MCP server. Folders vanish, links are pointed elsewhere, hosts write and are
 * killed. The messages for each model are compared with the disk: nothing untold, nothing false, nothing twice.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { Store } from '../../lib/index.ts'
import { folder, sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { random } from '../../rig/random.ts'
import { GENEROUS, NATIVE, say, sized } from './sized.ts'

afterEach(cleanUp)

const HOST = fileURLToPath(new URL('host.mjs', import.meta.url))
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const SECRET = 'Zaphodqx'
const NOTICE = /^stale id=\S+ path=(\S+) (?:deleted|version=([0-9a-f]{8}) .*)$/gm

interface Block {
  type: string
  text?: string
}
interface Sent {
  role: string
  content: Block[]
  toolCallId?: string
}
/**
 * A message's statement about a path: the beginning of the hash of its text; null without a file, undefined for "it has
 * changed".
 */
interface Says {
  path: string
  version: string | null | undefined
}

const versionOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)
/** The text on the disk. */
const textAt = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null)

/** A host's conversation and its process, if that runs. */
class Host {
  readonly messages: object[] = [{ role: 'user', content: [{ type: 'text', text: 'continue' }] }]
  /** The statement in the result of a call. */
  readonly says = new Map<string, Says>()
  #process: { ask(line: string): Promise<string>; kill(): Promise<unknown> } | undefined
  /** The notices of the last request. A later process repeats them in their places. */
  #notices: string[] = []
  readonly #args: string[]

  constructor(store: string, cwd: string, session: string) {
    this.#args = [HOST, NATIVE, store, cwd, session]
  }

  /** A tool was called and has answered. */
  call(name: string, args: Record<string, unknown>, text: string, says?: Says): void {
    const id = `${this.#args.at(-1)}_${this.messages.length}`
    this.messages.push(
      { role: 'assistant', content: [{ type: 'toolCall', id, name, arguments: args }] },
      { role: 'toolResult', toolCallId: id, toolName: name, content: [{ type: 'text', text }], isError: says === undefined },
    )
    if (says !== undefined) this.says.set(id, says)
  }

  /**
   * Returns the statements about paths in the messages for the model, in their order, and the last ones that are notices not sent
   * before.
   */
  async turn(): Promise<{ all: Says[]; fresh: Says[] }> {
    this.#process ??= this.#start()
    const sent = JSON.parse(await this.#process.ask(JSON.stringify(this.messages))) as Sent[]
    const [all, notices]: Says[][] = [[], []]
    for (const { role, content, toolCallId } of sent) {
      const said = role === 'toolResult' ? this.says.get(toolCallId!) : undefined
      const [{ text = '' } = {}] = content
      const hasChanged = text.startsWith('toolcall_ref ') && text.endsWith(' changed since')
      if (said !== undefined) all!.push(hasChanged ? { path: said.path, version: undefined } : said)
      if (role !== 'user') continue
      for (const [, path, version] of content.flatMap(({ text = '' }) => [...text.matchAll(NOTICE)])) {
        const notice = { path: path!, version: version ?? null }
        all!.push(notice)
        notices!.push(notice)
      }
    }
    // Two that stand at one place may change places with a new process.
    const left = [...this.#notices]
    const fresh = notices!.filter((notice) => {
      const found = left.indexOf(JSON.stringify(notice))
      if (found >= 0) left.splice(found, 1)
      return found < 0
    })
    this.#notices = notices!.map((notice) => JSON.stringify(notice))
    return { all: all!, fresh }
  }

  /** Ends the process by SIGKILL. */
  async kill(): Promise<void> {
    await this.#process?.kill()
    this.#process = undefined
  }

  #start() {
    const child = spawn(process.execPath, this.#args, { stdio: ['pipe', 'pipe', 'inherit'] })
    onCleanUp(() => void child.kill('SIGKILL'))
    const ended = new Promise((resolve) => child.once('close', resolve))
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    return {
      async ask(line: string) {
        child.stdin.write(`${line}\n`)
        const { value, done } = await lines.next()
        if (done === true) throw new Error('the host ended')
        return value as string
      },
      kill() {
        child.kill('SIGKILL')
        return ended
      },
    }
  }
}

async function mcp(store: string, cwd: string): Promise<(query: string) => Promise<string>> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [MAIN, 'mcp', '--store', store, '--session', 'a', '--session', 'b', '--folder', cwd],
      stderr: 'pipe',
    }),
  )
  onCleanUp(() => client.close())
  return async (query) => {
    const { content, isError = false } = (await client.callTool({ name: 'search', arguments: { query } })) as { content: Block[]; isError?: boolean }
    expect(isError, content[0]?.text).toBe(false)
    return content.map(({ text }) => text).join('\n')
  }
}

test(
  'three clients on one store learn everything and nothing false, and no forgotten text returns',
  async () => {
    const [steps, seed] = [sized(120, 800, 12_000), Number(process.env['CONTEXT_SEED'] ?? 1)]
    const { below, pick } = random(seed)
    const [cwd, { path: store }] = [folder(), sqlite()]
    const at = (name: string): string => join(cwd, name)
    const [plain, short, inside, link] = [at('plain.txt'), at('short.txt'), at('d/inside.txt'), at('link.txt')]
    const targets = [at('r0/t.txt'), at('r1/t.txt')]
    const paths = [plain, short, inside, link]
    let made = 0
    const text = (path: string): string => {
      made += 1
      return path === short ? `${made % 7}\n` : Array.from({ length: 1 + below(30) }, (_, n) => `text ${made} line ${n}\n`).join('')
    }
    const put = (path: string, content: string): void => {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
    }
    const point = (target: string): void => {
      rmSync(link, { force: true })
      symlinkSync(target, link)
    }
    for (const path of [plain, short, inside, ...targets]) put(path, text(path))
    point(targets[0]!)
    const hosts = ['a', 'b'].map((session) => new Host(store, cwd, session))
    put(at('secret.txt'), `a word: ${SECRET}\n`)
    put(at('kept.txt'), 'kept\n')
    hosts[0]!.call('read', { path: at('secret.txt') }, `a word: ${SECRET}\n`, { path: at('secret.txt'), version: versionOf(`a word: ${SECRET}\n`) })
    // A session that has met no file here is not told that one is gone: its tools may work on another machine.
    hosts[1]!.call('read', { path: at('kept.txt') }, 'kept\n', { path: at('kept.txt'), version: versionOf('kept\n') })
    for (const host of hosts) await host.turn()
    const search = await mcp(store, cwd)
    expect(await search(SECRET)).toContain(`a word: ${SECRET}`)

    let [notices, kills] = [0, 0]
    const wrong = { false: 0, missed: 0, doubled: 0 }
    const found: string[] = []
    const turn = async (step: number, host: Host): Promise<void> => {
      const { all, fresh } = await host.turn()
      notices += fresh.length
      const now = new Map(all.map(({ path }) => [path, textAt(path)] as const))
      const isNow = ({ path, version }: Says): boolean => version === undefined || version === (now.get(path) === null ? null : versionOf(now.get(path)!))
      const note = (kind: keyof typeof wrong, what: Says): void => {
        wrong[kind] += 1
        found.push(`step ${step}, host ${hosts.indexOf(host)}: ${kind}: ${what.path} ${what.version}`)
      }
      for (const one of fresh) {
        if (!isNow(one)) note('false', one)
        const before = all.slice(0, all.indexOf(one)).findLast(({ path }) => path === one.path)
        if (before?.version === one.version) note('doubled', one)
      }
      for (const path of now.keys()) {
        const last = all.findLast((one) => one.path === path)!
        if (!isNow(last)) note('missed', last)
      }
    }
    for (let step = 0; step < steps; step += 1) {
      const [host, path] = [pick(hosts), pick(paths)]
      const action = below(20)
      if (action < 3) put(path === link ? pick(targets) : path, text(path))
      else if (action === 3) rmSync(dirname(pick([inside, ...targets])), { recursive: true, force: true })
      else if (action === 4) rmSync(path, { force: true })
      else if (action < 7) point(pick(targets))
      else if (action < 11) {
        const content = textAt(path)
        if (content === null) host.call('read', { path }, `ENOENT: no such file or directory, open '${path}'`)
        else host.call('read', { path }, content, { path, version: versionOf(content) })
      } else if (action < 13) {
        const content = text(path)
        // A tool writes through a link, unless that leads nowhere.
        if (path === link && !existsSync(link)) rmSync(link, { force: true })
        put(path, content)
        host.call('write', { path, content }, `Successfully wrote ${content.length} bytes to ${path}`, { path, version: versionOf(content) })
      } else if (action === 13) {
        kills += 1
        await host.kill()
      } else await turn(step, host)
      if (step % 50 === 49) await search('text')
    }
    for (const host of hosts) await turn(steps, host)
    say(`told: seed ${seed}, ${steps} steps, ${notices} notices, ${kills} kills: ${wrong.false} false, ${wrong.missed} missed, ${wrong.doubled} doubled`)
    expect(found).toEqual([])

    for (const host of hosts) await host.kill()
    unlinkSync(at('secret.txt'))
    const owner = await Store.open({ kind: 'sqlite', path: store })
    await owner.forget([{ sessionId: 'a' }], 'over')
    await owner.close()
    for (const host of [...hosts, ...hosts]) {
      await host.turn()
      await host.kill()
      expect(await search(SECRET)).not.toContain(SECRET)
    }
  },
  GENEROUS,
)
