/** A conversation with a real agent behind a gateway, whose model takes one step after the other. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import type { ModelRequest, ScriptedCall } from '../../rig/exchange.ts'
import type { Answer } from '../../rig/reply.ts'
import type { Agent } from './agents.ts'
import { Workplace } from './workplace.ts'
import type { Chat } from './workplace.ts'
import { long } from './support.ts'

/** A conversation of an agent. */
export class Talk {
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

  private constructor(agent: Agent, steps: Steps, server: ModelServer, options: readonly string[]) {
    this.agent = agent
    this.steps = steps
    this.server = server
    this.place = new Workplace(agent, server.url, options)
  }

  /** Starts a conversation behind a gateway with these options. */
  static async start(agent: Agent, options: readonly string[] = []): Promise<Talk> {
    const steps = new Steps(agent)
    return new Talk(agent, steps, await startModelServer((request) => steps.answer(request), { account: 'new' }), options)
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

/** The answered requests of the conversation itself, from a number on. */
export const mains = (server: ModelServer, agent: Agent, from = 0): ModelRequest[] =>
  server.requests.slice(from).filter((request) => agent.isMain(request) && (request.status ?? 200) === 200 && request.kind === 'agent')
/** Claude Code writes the same text as a string or as a block, depending on where its cache marker is. */
export const jsons = (request: ModelRequest): string[] =>
  request.messages.slice(1).map(({ json }) => json.replace(/"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]/, '"content":$1'))
/** All that a request says. */
export const textOf = (request: ModelRequest): string => request.messages.map(({ json }) => json).join('\n')
/** The newest output in a request. */
export const lastResult = (request: ModelRequest): string => request.messages.flatMap(({ results }) => results).at(-1)?.text ?? ''
/** The first reference to an output; `none` without one. */
export const handleIn = (request: ModelRequest): string => /toolcall_ref id=([0-9a-f]+) tool=(?:bash|read)/.exec(textOf(request))?.[1] ?? 'none'

/** The number of requests that do not continue the one before. */
export function breaks(requests: readonly ModelRequest[]): number {
  return requests.filter((request, n) => {
    const before = n === 0 ? [] : jsons(requests[n - 1] as ModelRequest)
    return before.some((json, at) => jsons(request)[at] !== json)
  }).length
}

/** True if the last output is one of the files', from its first line to its last, byte for byte. */
export function isBroughtBack(agent: Agent, request: ModelRequest): boolean {
  const [line = ''] = /n\d+ line 0 /.exec(lastResult(request)) ?? []
  return line !== '' && agent.hasWhole(lastResult(request), long(line.split(' ')[0] as string, agent.lines))
}

const rollsIn = (text: string): number => [...text.matchAll(/(\d+) rolls?\b/g)].reduce((sum, [, count]) => sum + Number(count), 0)

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
