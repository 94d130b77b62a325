/**
 * Everything that can leave the model's sight, in the wire formats of the providers: no request may be one that a
 * provider refuses.
 */
import { afterEach, expect, test } from 'vitest'
import { cleanUp, startRpc } from '../../rig/pi.ts'
import type { Reply } from '../../rig/reply.ts'
import { resultsById } from '../../rig/request.ts'
import type { Api, ModelRequest } from '../../rig/exchange.ts'
import { refusals } from '../../rig/valid.ts'
import { lines, put, setUp } from './support.ts'

afterEach(cleanUp)

/** Answers with calls in each turn. */
const STEPS = 9

const LONG = 'and it should stay as it is for everybody who reads it later on. '.repeat(40)

const PROMPTS = [`the first of all: ${LONG}`, `the second: ${LONG}`, `<skill name="tidy">\n${LONG}`, `the fourth: ${LONG}`, `the newest: ${LONG}`]

/** A picture of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The calls of a step: something of everything that Pi's tools return. */
function callsOf(step: number): NonNullable<Reply['calls']> {
  const id = (name: string): string => `call_${step}_${name}`
  switch (step % STEPS) {
    case 0:
      return [{ name: 'write', args: { path: `w${step}.txt`, content: lines(`written ${step}`, 60) }, id: id('write') }]
    case 1:
      return [
        { name: 'read', args: { path: `w${step - 1}.txt` }, id: id('read') },
        { name: 'bash', args: { command: `echo aside ${step}; seq 1 200` }, id: id('bash') },
      ]
    case 2: {
      const [oldText, newText] = [lines(`written ${step - 2}`, 30), lines(`edited ${step}`, 30)]
      return [{ name: 'edit', args: { path: `w${step - 2}.txt`, edits: [{ oldText, newText }] }, id: id('edit') }]
    }
    case 3:
      return [{ name: 'bash', args: { command: `for i in $(seq 1200); do echo "step ${step}, line $i of a long output"; done` }, id: id('bash') }]
    case 4:
      return [{ name: 'read', args: { path: 'pixel.png' }, id: id('image') }]
    case 5:
      return [{ name: 'bash', args: { command: 'false' }, id: id('bash') }]
    case 6:
      return [{ name: 'read', args: { path: 'AGENTS.md' }, id: id('rules') }]
    case 7:
      return [
        { name: 'ls', args: {}, id: id('ls') },
        { name: 'bash', args: { command: 'true' }, id: id('bash') },
        { name: 'grep', args: { pattern: 'line', path: '.' }, id: id('grep') },
      ]
    default:
      return [{ name: 'bash', args: { command: `printf '%s' ${'word '.repeat(200)}${step}` }, id: id('bash') }]
  }
}

/** Returns the model's reasoning and text before the calls of a step, or as the last word of a turn. */
function wordsOf(step: number): Pick<Reply, 'thinking' | 'text'> {
  return {
    thinking: `Thought ${step}: ${'what does that mean for the rest of it? '.repeat(30)}`,
    // Not every answer says something.
    ...(step % 3 === 0 ? {} : { text: `Words ${step}: ${'now I look at what comes next. '.repeat(20)}` }),
  }
}

function everything({ body }: ModelRequest): string {
  return JSON.stringify(body.messages ?? body.input)
}

function userTexts(request: ModelRequest): string[] {
  return request.messages.filter((message) => message.role === 'user').map((message) => message.text)
}

test.each<[string, Api, string]>([
  ['Claude', 'anthropic-messages', 'claude-scripted'],
  ['a copy of Anthropic’s API', 'anthropic-messages', 'scripted'],
  ['OpenAI Completions', 'openai-completions', 'scripted'],
  ['OpenAI Responses', 'openai-responses', 'scripted'],
])('%s takes every form', async (_name, api, model) => {
  let step = 0
  let isLast = false
  const { server, home, load } = await setUp(
    () => {
      if (step > 0 && step % STEPS === 0 && !isLast) {
        isLast = true
        return { ...wordsOf(1000 + step), text: `Done with step ${step}. ${'It went as it should. '.repeat(40)}` }
      }
      isLast = false
      const calls = callsOf(step)
      const words = wordsOf(step)
      step += 1
      return { ...words, calls }
    },
    {
      api,
      model: { id: model, reasoning: true },
      settings: { defaultModel: model, defaultThinkingLevel: 'medium' },
      // Nothing is ever in the provider's cache, so that all leaves as soon as it may.
      context: { binding: 'none', thinking: 2, calls: 3, prose: 2, cacheLifetimeSeconds: 0.001 },
    },
  )
  put(home, 'AGENTS.md', lines('rule', 40))
  put(home, 'pixel.png', Buffer.from(PIXEL, 'base64'))
  const rpc = await startRpc({ ...load, args: ['--model', `rig/${model}`] })
  for (const prompt of PROMPTS) await rpc.prompt(prompt)

  const refused = server.requests.flatMap((request) => refusals(request, server.said.slice(0, request.n)).map((why) => `request ${request.n}: ${why}`))
  expect(refused).toEqual([])

  // Each form has been sent.
  const last = server.agentRequests.at(-1)!
  const all = server.agentRequests.map(everything).join('\n')
  const results = [...resultsById(last)]
  const isSent = (form: RegExp): boolean => form.test(all)
  expect(results.filter(([, text]) => /^toolcall_ref id=\S+ tool=\w+ status=ok(?: -> .+)?$/.test(text)).length).toBeGreaterThan(0)
  expect(results.filter(([, text]) => /^toolcall_ref [^\n]*\n(bash|read|said|edit|write|ls|grep)\b/.test(text)).length).toBeGreaterThan(0)
  expect([/left out: lines \d+-\d+/, /\[collapsed #/, /\[\.\.\. \d+ more chars: id=/].filter((form) => !isSent(form))).toEqual([])
  const thoughts = server.said.flat().flatMap((part) => ('thinking' in part ? [part.thinking] : []))
  const kept = thoughts.filter((thought) => everything(last).includes(thought))
  expect(kept.length).toBeGreaterThan(0)
  expect(kept.length).toBeLessThan(0.7 * thoughts.length)
  // These are whole.
  const [first, ...others] = userTexts(last)
  expect(first).toContain(PROMPTS[0])
  expect(others.some((text) => text.includes(PROMPTS[2]!))).toBe(true)
  expect(others.some((text) => text.includes(PROMPTS.at(-1)!))).toBe(true)
  expect(others.some((text) => text.startsWith('the second') && text.length < 800)).toBe(true)
  expect(results.some(([id, text]) => id.includes('rules') && text.includes(lines('rule', 40)))).toBe(true)
})
