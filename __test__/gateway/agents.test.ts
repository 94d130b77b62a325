/**
 * Real agents behind a gateway, against a scripted provider that binds its reasoning. With CONTEXT_PROGRAMS=1, or the name of
 * one, they are installed from the registry and run some turns each; with CONTEXT_PROGRAMS=long, 60 calls, and everything that
 * goes wrong.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import type { Answer } from '../../rig/reply.ts'
import { agentNamed } from './agents.ts'
import type { Agent } from './agents.ts'
import { INSTALLS_LONG } from './installed.ts'
import { ASKED } from './newer-agents.ts'
import { breaks, handleIn, isBroughtBack, jsons, lastResult, mains, Talk, textOf } from './talk.ts'

afterEach(cleanUp)

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
