/**
 * Real agents behind a gateway, against a scripted provider that binds its reasoning. With CONTEXT_PROGRAMS=1, or the name of
 * one, they are installed from the registry and run some turns each; with CONTEXT_PROGRAMS=long, 60 calls, and everything that
 * goes wrong.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import type { ModelRequest, ScriptedCall } from '../../rig/exchange.ts'
import type { Answer } from '../../rig/reply.ts'
import { agentNamed, Workplace } from './agents.ts'
import type { Agent, Chat } from './agents.ts'
import { INSTALLS_LONG } from './installed.ts'
import { ASKED } from './newer-agents.ts'
import { long } from './support.ts'

afterEach(cleanUp)

/** An answer, or what gives one for a request; undefined leaves it to the next step. */
type Step = Answer | ((request: ModelRequest) => Answer | undefined | Promise<Answer | undefined>)

/** A model that takes one step after the other, whatever it is sent, and is done when there is none left. */
class Steps {
  readonly steps: Step[] = []
  subagents: Step[] = []
  readonly agent: Agent

  constructor(agent: Agent) {
    this.agent = agent
  }

  async answer(request: ModelRequest): Promise<Answer> {
    const { agent } = this
    const list = agent.isSubagent?.(request) === true ? this.subagents : agent.isMain(request) ? this.steps : undefined
    for (let step = list?.shift(); step !== undefined; step = list?.shift()) {
      const answer = typeof step === 'function' ? await step(request) : step
      if (answer !== undefined) return answer
    }
    return 'done'
  }

  /** Calls a tool with some reasoning before it. */
  call(call: ScriptedCall | ((request: ModelRequest) => ScriptedCall)): void {
    this.steps.push((request) => ({ thinking: `step ${request.n}: this is worth a thought`, calls: [typeof call === 'function' ? call(request) : call] }))
  }
}

const mains = (server: ModelServer, agent: Agent, from = 0): ModelRequest[] =>
  server.requests.slice(from).filter((request) => agent.isMain(request) && (request.status ?? 200) === 200 && request.kind === 'agent')
/** Claude Code writes the same text as a string or as a block, depending on where its cache marker is. */
const jsons = (request: ModelRequest): string[] =>
  request.messages.slice(1).map(({ json }) => json.replace(/"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]/, '"content":$1'))
const textOf = (request: ModelRequest): string => request.messages.map(({ json }) => json).join('\n')
const lastResult = (request: ModelRequest): string => request.messages.flatMap(({ results }) => results).at(-1)?.text ?? ''
const handleIn = (request: ModelRequest): string => /toolcall_ref id=([0-9a-f]+) tool=(?:bash|read)/.exec(textOf(request))?.[1] ?? 'none'

function breaks(requests: readonly ModelRequest[]): number {
  return requests.filter((request, n) => {
    const before = n === 0 ? [] : jsons(requests[n - 1] as ModelRequest)
    return before.some((json, at) => jsons(request)[at] !== json)
  }).length
}

const rollsIn = (text: string): number => [...text.matchAll(/(\d+) rolls?\b/g)].reduce((sum, [, count]) => sum + Number(count), 0)

/** True if the last output is one of the files', from its first line to its last, byte for byte. */
function isBroughtBack(agent: Agent, request: ModelRequest): boolean {
  const [line = ''] = /n\d+ line 0 /.exec(lastResult(request)) ?? []
  return line !== '' && agent.hasWhole(lastResult(request), long(line.split(' ')[0] as string, agent.lines))
}

/** A conversation of an agent. */
class Talk {
  readonly agent: Agent
  readonly steps: Steps
  readonly server: ModelServer
  readonly place: Workplace
  rolls = 0
  /** The gateway's last words. */
  summary = ''
  #chat: Chat | undefined
  #files = 0
  turns = 0

  private constructor(agent: Agent, steps: Steps, server: ModelServer) {
    this.agent = agent
    this.steps = steps
    this.server = server
    this.place = new Workplace(agent, server.url)
  }

  static async start(agent: Agent): Promise<Talk> {
    const steps = new Steps(agent)
    return new Talk(agent, steps, await startModelServer((request) => steps.answer(request), { account: 'new' }))
  }

  /** Calls that show a file each. */
  reads(count: number): void {
    for (let n = 0; n < count; n += 1) {
      const name = `n${(this.#files += 1)}`
      writeFileSync(join(this.place.cwd, `${name}.txt`), long(name, this.agent.lines))
      this.steps.call(this.agent.shell(`cat ${name}.txt`))
    }
  }

  /**
   * Reads files until something has collapsed, however long the rule takes for that: turn by turn, because on a model that
   * binds its reasoning it waits for the user, or within the next turn where the agent has only one.
   */
  async collapsed(turn = (prompt: string) => this.turn(prompt)): Promise<void> {
    if (!this.agent.repeats) return this.#readsOn(60)
    for (let n = 0; n < 15 && this.#handle === 'none'; n += 1) {
      this.reads(8)
      await turn(`more ${n}`)
    }
    expect(this.#handle).not.toBe('none')
  }

  get #handle(): string {
    const last = mains(this.server, this.agent).at(-1)
    return last === undefined ? 'none' : handleIn(last)
  }

  #readsOn(most: number): void {
    this.steps.steps.push((request) => {
      if (most === 0 || handleIn(request) !== 'none') return undefined
      const later = this.steps.steps.splice(0)
      this.reads(1)
      this.#readsOn(most - 1)
      this.steps.steps.push(...later)
      return undefined
    })
  }

  /** One turn of the user: in the process of the one before if the agent can, else in a new one. */
  async turn(prompt: string): Promise<void> {
    if (this.agent.chat !== undefined) {
      this.#chat ??= this.place.chat(this.turns > 0)
      await this.#chat.turn(prompt)
    } else {
      const ran = await this.place.ask(prompt, this.turns > 0)
      this.#ended(ran)
    }
    this.turns += 1
    expect(this.steps.steps.length).toBe(0)
  }

  /** Ends the process, so that the next turn begins in a new one. */
  async end(): Promise<void> {
    const ran = await this.#chat?.end()
    this.#chat = undefined
    if (ran !== undefined) this.#ended(ran)
  }

  #ended({ code, stderr }: { code: number | null; stderr: string }): void {
    expect(code, stderr.slice(-2000)).toBe(0)
    this.rolls += rollsIn(stderr)
    this.summary = stderr.split('\n').findLast((line) => line.startsWith('pi-context')) ?? ''
  }

  /** Turns until something has collapsed. */
  async collapse(): Promise<void> {
    await this.collapsed()
    if (!this.agent.repeats) await this.turn('begin')
    await this.end()
  }

  check(): void {
    expect(this.server.problems.filter((problem) => !/unexpected (?:HEAD|GET)|count_tokens|unexpected POST \/v1\/responses\/compact/.test(problem))).toEqual([])
    expect(this.server.requests.filter(({ verdict }) => verdict?.refusal !== undefined)).toEqual([])
  }
}

describe.each(['claude', 'codex', 'opencode', 'qwen', 'continue', 'kilo', 'copilot', 'cline', 'kimi'] as const)('%s', { timeout: 600_000 }, (name) => {
  const agent = agentNamed(name)

  test.skipIf(agent === undefined)('prefix, way back, a changed file, errors, resume', async () => {
    const real = agent as Agent
    const talk = await Talk.start(real)
    const { steps, server, place } = talk
    const each = INSTALLS_LONG ? 18 : 16
    const file = join(place.cwd, 'a.txt')
    writeFileSync(file, 'one\n'.repeat(40))
    talk.reads(each)
    // Errors come between, and go through as they are.
    steps.steps.splice(5, 0, { status: 429, headers: { 'retry-after': '0' } }, { status: 500, headers: { 'retry-after': '0' } })
    // A new process continues with the same bytes; at the user's turn it may roll.
    if (real.repeats) await talk.turn('begin')
    talk.reads(each)
    if (real.repeats) await talk.turn('continue')
    await talk.collapsed()
    steps.call(real.read?.(file) ?? real.shell(`cat ${file}`))
    let asked = ''
    steps.call((request) => real.recall((asked = handleIn(request))))
    steps.steps.push((request) => {
      expect([asked, isBroughtBack(real, request)]).toEqual([expect.stringMatching(/^[0-9a-f]{8,}$/), true])
      appendFileSync(file, 'changed by another user\n')
      return { calls: [real.shell('true')] }
    })
    // A request waits for the file's tracker, but not long; a later change is reported in the next one.
    let told = ''
    const listens = (request: ModelRequest): Answer => ((told = textOf(request)), { calls: [real.shell('true')] })
    steps.steps.push(listens, listens)
    if (INSTALLS_LONG) talk.reads(each)
    await talk.turn('and on')
    await talk.end()
    talk.reads(INSTALLS_LONG ? 4 : 1)
    await talk.turn('to the end')
    await talk.end()
    const requests = mains(server, real)
    process.stderr.write(
      `${name} ${real.program.version}: ${requests.length} calls in ${talk.turns} turns, ${talk.rolls} rolls, ${breaks(requests)} breaks; ${talk.summary}\n`,
    )
    talk.check()
    expect(requests.length).toBeGreaterThanOrEqual(INSTALLS_LONG ? 60 : 35)
    const [goesOn] = requests.slice(real.repeats ? -1 : 0).filter((request) => textOf(request).includes('toolcall_ref id='))
    expect(goesOn).toBeDefined()
    expect(told).toMatch(/stale id=\S+ path=\S*a\.txt/)
    const own = real.ownBreaks + (real.rewrites === true ? talk.turns - 1 : 0)
    if (real.repeats) expect(breaks(requests)).toBeLessThanOrEqual(talk.rolls + own)
  })

  describe.skipIf(agent === undefined || !INSTALLS_LONG)('at length', () => {
    const real = agent as Agent

    test.skipIf(agent?.subagent === undefined)('a subagent restores the outputs that its prompt names', async () => {
      const talk = await Talk.start(real)
      // Without an ID, a new process is another conversation.
      if (real.repeats) await talk.collapse()
      else await talk.collapsed()
      let handle = ''
      talk.steps.steps.push((request) => {
        handle = handleIn(request)
        return { calls: [real.subagent!(`${ASKED} id=${handle}. Say what it is.`)] }
      })
      const { waits } = real
      if (waits !== undefined) talk.steps.steps.push((request) => ({ calls: [waits(lastResult(request))] }))
      let isBack = false
      talk.steps.subagents = [
        () => ({ calls: [real.recall(handle)] }),
        (request) => {
          isBack = isBroughtBack(real, request)
          return 'it is a file'
        },
      ]
      await talk.turn('ask a subagent')
      await talk.end()
      expect([handle, isBack]).toEqual([expect.stringMatching(/^[0-9a-f]{8,}$/), true])
      talk.check()
    })

    // Cline's own would need a window that its settings can't name.
    test.skipIf((agent?.compact ?? agent?.compactsAt ?? agent?.compactsIn) === undefined)(
      'after a compaction by the host, earlier outputs come back',
      async () => {
        const talk = await Talk.start(real)
        const { steps, server } = talk
        await talk.collapse()
        const before = mains(server, real).at(-1) as ModelRequest
        const handle = handleIn(before)
        if (real.compactsIn !== undefined) {
          real.window = real.compactsIn
          talk.place.prepare()
        } else if (real.compact === undefined) {
          steps.steps.push({ text: 'that was a lot', usage: { input: real.compactsAt! } })
          await talk.turn('how much is it?')
        } else {
          await talk.turn(real.compact)
          await talk.end()
        }
        const from = server.requests.length
        steps.steps.push(() => ({ calls: [real.recall(handle)] }))
        let isBack = false
        steps.steps.push((request) => {
          isBack = isBroughtBack(real, request)
          return 'there it is'
        })
        await talk.turn('bring it back')
        await talk.end()
        const after = server.requests.slice(from).filter((request) => real.isMain(request))
        expect(textOf(after.at(-1)!).length).toBeLessThan(textOf(mains(server, real).at(-4)!).length + 100_000)
        if (real.compactsIn !== undefined) expect(after.at(-1)!.messages.length).toBeLessThan(before.messages.length)
        expect([handle, isBack]).toEqual([expect.stringMatching(/^[0-9a-f]{8,}$/), true])
        talk.check()
      },
    )

    test('the gateway after a killed one has the collapsed outputs and the way back', async () => {
      const talk = await Talk.start(real)
      const { steps, place } = talk
      await place.startBeside()
      const turn = async (prompt: string, goesOn: boolean): Promise<void> => {
        const ran = await place.askBeside(prompt, goesOn).ended
        expect([ran.code, steps.steps.length], `${ran.stderr}\n${ran.stdout}`.slice(-2000)).toEqual([0, 0])
      }
      let turns = 0
      await talk.collapsed((prompt) => turn(prompt, (turns += 1) > 1))
      let killed: ModelRequest | undefined
      // Killed while it waits for an answer, which then reaches no client.
      steps.steps.push(async (request) => {
        killed = request
        await place.endBeside('SIGKILL')
        await place.startBeside()
        return 'an unheard answer'
      })
      let again: ModelRequest | undefined
      steps.steps.push((request) => {
        again = request
        return { calls: [real.recall(handleIn(request))] }
      })
      let isBack = false
      steps.steps.push((request) => {
        isBack = isBroughtBack(real, request)
        return 'done'
      })
      await turn('and on', real.repeats)
      expect(textOf(killed!)).toContain('toolcall_ref id=')
      expect(jsons(again!)).toEqual(jsons(killed!))
      expect(isBack).toBe(true)
      talk.check()
    })

    test('a broken stream is broken for the client, which continues in its own way', async () => {
      const talk = await Talk.start(real)
      talk.reads(3)
      talk.steps.steps.splice(2, 0, { text: 'half an ans', cut: true })
      await talk.turn('begin')
      await talk.end()
      talk.check()
      expect(mains(talk.server, real).length).toBeGreaterThanOrEqual(4)
    })
  })
})
