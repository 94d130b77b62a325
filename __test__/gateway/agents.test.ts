/**
 * Real agents behind a gateway of their own, against a scripted provider that binds its reasoning. With CONTEXT_PROGRAMS=1
 * they are installed from the registry.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import type { ModelServer } from '../rig/model-server.ts'
import type { Answer, ScriptedCall } from '../rig/reply.ts'
import type { ModelRequest } from '../rig/request.ts'
import { agentNamed, Workplace } from './agents.ts'
import type { Agent } from './agents.ts'
import { long } from './support.ts'

afterEach(cleanUp)

type Step = Answer | ((request: ModelRequest) => Answer)

/** A model that takes one step after the other, whatever it is sent, and is done when there is none left. */
class Steps {
  readonly steps: Step[] = []
  subagents: Step[] = []
  readonly agent: Agent

  constructor(agent: Agent) {
    this.agent = agent
  }

  answer(request: ModelRequest): Answer {
    const { agent } = this
    const list = agent.isSubagent?.(request) === true ? this.subagents : agent.isMain(request) ? this.steps : undefined
    const step = list?.shift()
    return step === undefined ? 'done' : typeof step === 'function' ? step(request) : step
  }

  /** Calls a tool with some reasoning before it. */
  call(call: ScriptedCall | ((request: ModelRequest) => ScriptedCall)): void {
    this.steps.push((request) => ({ thinking: `step ${request.n}: this is worth a thought`, calls: [typeof call === 'function' ? call(request) : call] }))
  }
}

const mains = (server: ModelServer, agent: Agent): ModelRequest[] => server.requests.filter((request) => agent.isMain(request) && (request.status ?? 200) === 200)
/** Claude Code writes the same text as a string or as a block, depending on where its cache marker is. */
const jsons = (request: ModelRequest): string[] =>
  request.messages.slice(1).map(({ json }) => json.replace(/"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]/, '"content":$1'))
const textOf = (request: ModelRequest): string => request.messages.map(({ json }) => json).join('\n')
const lastResult = (request: ModelRequest): string => request.messages.flatMap(({ results }) => results).at(-1)?.text ?? ''
const handleIn = (request: ModelRequest): string => /toolcall_ref id=([0-9a-f]+) tool=bash/.exec(textOf(request))?.[1] ?? 'none'

function breaks(requests: readonly ModelRequest[]): number {
  return requests.filter((request, n) => {
    const before = n === 0 ? [] : jsons(requests[n - 1] as ModelRequest)
    return before.some((json, at) => jsons(request)[at] !== json)
  }).length
}

const rollsIn = (text: string): number => Number(/(\d+) rolls?/.exec(text)?.[1] ?? Number.NaN)

describe.each(['claude', 'codex', 'opencode', 'qwen'] as const)('%s', { timeout: 600_000 }, (name) => {
  const agent = agentNamed(name)

  test.skipIf(agent === undefined)('60 calls: prefix, way back, a changed file, errors, resume', async () => {
    const real = agent as Agent
    const steps = new Steps(real)
    const server = await startModelServer((request) => steps.answer(request), { account: 'new' })
    const place = new Workplace(real, server.url)
    for (let n = 0; n < 60; n += 1) writeFileSync(join(place.cwd, `n${n}.txt`), long(`n${n}`, real.lines))
    const file = join(place.cwd, 'a.txt')
    writeFileSync(file, 'one\n'.repeat(40))
    steps.call(real.read?.(file) ?? real.shell(`cat ${file}`))
    for (let n = 0; n < 52; n += 1) steps.call(real.shell(`cat n${n}.txt`))
    // Errors come between, and go through as they are.
    steps.steps.splice(5, 0, { status: 429, headers: { 'retry-after': '0' } }, { status: 500, headers: { 'retry-after': '0' } })
    let asked = ''
    steps.call((request) => real.recall((asked = handleIn(request))))
    steps.steps.push((request) => {
        expect(asked).not.toBe('none')
      expect(lastResult(request)).toContain(` line ${real.lines - 1} `)
      const [line] = /n\d+ line 0 /.exec(lastResult(request)) ?? ['']
      expect(real.hasWhole(lastResult(request), long(line.split(' ')[0] as string, real.lines))).toBe(true)
      appendFileSync(file, 'changed by somebody else\n')
      return { calls: [real.shell('true')] }
    })
    let told = ''
    steps.steps.push((request) => {
      told = textOf(request)
      return { calls: [real.shell('cat n53.txt')] }
    })
    for (let n = 54; n < 60; n += 1) steps.call(real.shell(`cat n${n}.txt`))
    const first = await place.ask('start')
    process.stderr.write(`${name} ${real.program.version}: ${first.stderr.split('\n').filter((line) => line.startsWith('pi-context')).join(' | ')}\n`)
    const requests = mains(server, real)
    expect(first.code, first.stderr.slice(-2000)).toBe(0)
    expect(steps.steps).toEqual([])
    expect(server.problems.filter((problem) => !/unexpected (?:HEAD|GET)|count_tokens/.test(problem))).toEqual([])
    expect(requests.length).toBeGreaterThanOrEqual(60)
    expect(breaks(requests)).toBeLessThanOrEqual(rollsIn(first.stderr) + real.ownBreaks)
    expect(requests.filter(({ verdict }) => verdict?.refusal !== undefined)).toEqual([])
    if (real.read !== undefined) expect(told).toMatch(/stale id=\S+ path=\S*a\.txt/)

    // A new process goes on with the same bytes; at the user's turn it may roll.
    const from = server.requests.length
    steps.call(real.shell('cat n0.txt'))
    const second = await place.ask('go on', true)
    expect(second.code, second.stderr.slice(-2000)).toBe(0)
    const resumed = server.requests.slice(from).filter((request) => real.isMain(request))
    expect(resumed.length).toBeGreaterThanOrEqual(2)
    if (!real.repeats) return
    expect(breaks([requests.at(-1) as ModelRequest, ...resumed])).toBeLessThanOrEqual(rollsIn(second.stderr))
    expect(textOf(resumed[0] as ModelRequest)).toContain('toolcall_ref id=')
  })
})
