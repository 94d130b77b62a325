/**
 * The cost without the gateway is that of the host's own requests on the provider's cache, also where the host goes back in its
 * conversation, or changes what it has sent: the provider still has the shorter prefixes.
 */
import { afterEach, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { ANTHROPIC, bare, CHAT, claimAndTruth, MARKED, RESPONSES, SYSTEM } from './claims.ts'
import type { Block, Format, Host, Message } from './claims.ts'

afterEach(cleanUp)

/** Removes the `count` steps before the newest one. */
const back =
  (count: number, isDue: (k: number) => boolean): Host =>
  (steps, k) =>
    void (isDue(k) && steps.splice(Math.max(1, steps.length - 1 - count), count))

const HOSTS: Record<string, Host> = {
  'that only continues': () => {},
  'that goes back by one step, often': back(1, (k) => k % 6 === 5),
  'that goes back by three steps, once': back(3, (k) => k === 40),
  'that goes back by three steps, often': back(3, (k) => k % 9 === 8),
  'that goes back by ten steps, once': back(10, (k) => k === 40),
  'that goes back by ten steps, often': back(10, (k) => k % 15 === 14),
  'that goes back by more than half': back(30, (k) => k === 45),
  'that goes back after a long pause': (steps, k) => {
    back(4, (at) => at % 10 === 9)(steps, k)
    return k % 10 === 9 ? 2_400_000 : 0
  },
  'that pauses for longer than a prompt is surely kept': (_steps, k) => (k % 10 === 9 ? 400_000 : 0),
  'that clears old outputs': (steps, k) => {
    if (k % 20 !== 19) return
    for (const step of steps.slice(0, -5)) if (step.call !== undefined) step.call = { ...step.call, output: '[cleared]' }
  },
  'that clears one old output a call': (steps) => {
    const old = steps.slice(0, -15).find(({ call }) => call !== undefined && call.output !== '[cleared]')
    if (old?.call !== undefined) old.call = { ...old.call, output: '[cleared]' }
  },
  'whose first message changes with each call': (steps, k) => void (steps[0] = { said: `begin, it is ${k}` }),
  'whose first message changes now and then': (steps, k) => void (steps[0] = { said: `begin, it is day ${Math.floor(k / 15)}` }),
  'that ends with a passing reminder': (steps, k) => {
    for (const step of steps) delete step.reminder
    steps.at(-1)!.reminder = `reminder ${k}`
  },
}

test.each(
  Object.entries({ "Anthropic's format": ANTHROPIC, 'Chat Completions': CHAT, Responses: RESPONSES }).flatMap(([name, format]) =>
    Object.entries(HOSTS).map(([how, host]): [string, string, Format, Host] => [name, how, format, host]),
  ),
)('%s, a host %s: its cost without the gateway is the true one within 2 %%', async (name, how, format, host) => {
  const { claimed, without, paid, rolls } = await claimAndTruth(format, host)
  const off = claimed / without - 1
  process.stderr.write(
    `${name}, a host ${how}: paid $${paid.toFixed(4)}, said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * off).toFixed(2)} %, ${rolls} rolls)\n`,
  )
  expect(rolls).toBeGreaterThan(0)
  expect(Math.abs(off)).toBeLessThan(0.02)
})

test.each([
  ["Anthropic's format", ANTHROPIC],
  ['Chat Completions', CHAT],
  ['Responses', RESPONSES],
])(
  '%s, a host that calls two models in turn: each finds its own prompts, and the cost without the gateway is the true one within 2 %%',
  async (name, format) => {
    for (const calls of [3, 12]) {
      const { claimed, without, rolls } = await claimAndTruth(format, () => {}, {
        modelAt: (k) => (Math.floor(k / calls) % 2 === 0 ? format.model : format.other),
      })
      process.stderr.write(
        `${name}, two models, ${calls} calls each: said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %)\n`,
      )
      expect(rolls).toBeGreaterThan(0)
      expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
    }
  },
)

/** The format of a host that declares one tool more from some call on, as that of an MCP server that has connected, or has another system prompt. */
function changedFrom(format: Format, call: number, what: 'tools' | 'system'): Format {
  const more = [...Array.from({ length: 12 }, (_, n) => `word${n}`)].join(' ')
  return {
    ...format,
    body: (steps) => {
      const body = format.body(steps) as Record<string, unknown>
      if (steps.length <= call) return body
      if (what === 'tools') return { ...body, tools: [...(body['tools'] as object[]), lateTool(format, more)] }
      return JSON.parse(JSON.stringify(body).replace(SYSTEM, `${SYSTEM}${more}`)) as object
    },
  }
}

function lateTool({ kind }: Format, description: string): object {
  if (kind === 'breakpoints') return { name: 'Late', description, input_schema: { type: 'object' } }
  if (kind === 'prefix') return { type: 'function', function: { name: 'Late', description, parameters: { type: 'object' } } }
  return { type: 'function', name: 'Late', description, parameters: { type: 'object' } }
}

test.each(
  Object.entries({ "Anthropic's format": ANTHROPIC, 'Chat Completions': CHAT, Responses: RESPONSES }).flatMap(([name, format]) =>
    (['tools', 'system'] as const).flatMap((what) =>
      [6, 20, 45].map((call): [string, string, number, Format] => [name, what, call, changedFrom(format, call, what)]),
    ),
  ),
)('%s, a host whose %s change behind call %i: its cost without the gateway is the true one within 2 %%', async (name, what, call, format) => {
  const { claimed, without, rolls } = await claimAndTruth(format, () => {})
  process.stderr.write(
    `${name}, ${what} from ${call} on: said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %, ${rolls} rolls)\n`,
  )
  expect(rolls).toBeGreaterThan(0)
  expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
})

const prompting: Host = (steps, k) => void (k > 0 && k % 6 === 0 && steps.push({ said: `next ${k}` }))

test.each([
  ["Anthropic's format", ANTHROPIC, 0],
  ["Anthropic's format", ANTHROPIC, 10],
  ['Chat Completions', CHAT, 0],
  ['Chat Completions', CHAT, 20],
  ['Responses', RESPONSES, 0],
  ['Responses', RESPONSES, 40],
])('%s, a gateway that is started anew for each prompt, case %#: the cost without it is the true one within 2 %%', async (name, format, minutes) => {
  const host: Host = (steps, k) => {
    prompting(steps, k)
    return k > 0 && k % 6 === 0 ? 60_000 * minutes : 0
  }
  const { claimed, without, paid, rolls } = await claimAndTruth(format, host, { isNewAt: (k) => k > 0 && k % 6 === 0 })
  process.stderr.write(
    `${name}, anew for each prompt, after ${minutes} minutes: paid $${paid.toFixed(4)}, said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %, ${rolls} rolls)\n`,
  )
  expect(rolls).toBeGreaterThan(0)
  expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
})

test.each<[how: string, course: Parameters<typeof claimAndTruth>[2]]>([
  ['two gateways in turn', { isNewAt: (k) => k > 0 && k % 6 === 0, inTurns: true }],
  ['80 other conversations between two prompts', { othersAt: (k) => (k === 24 || k === 48 ? 80 : 0) }],
])('%s: the cost without them is the true one within 2 %%', async (how, course) => {
  const { claimed, without, rolls } = await claimAndTruth(ANTHROPIC, prompting, course)
  process.stderr.write(`${how}: said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %, ${rolls} rolls)\n`)
  expect(rolls).toBeGreaterThan(0)
  expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
})

/** Text that a provider counts, without what stands around it in JSON, behind a system prompt too short to be kept. */
const SHORT: Record<string, Format> = {
  "Anthropic's format": {
    ...ANTHROPIC,
    body: (steps) => ({ ...ANTHROPIC.body(steps), system: [{ type: 'text', text: SYSTEM.slice(0, 3500), ...MARKED }] }),
    parts: ({ tools, system, messages }: { tools: Block[]; system: Block[]; messages: Message[] }) => [
      ...[...tools, ...system].map((one) => ({ text: bare(one), isMarked: one.cache_control !== undefined })),
      ...messages.flatMap(({ role, content }) => content.map((block) => ({ text: role + bare(block), isMarked: block.cache_control !== undefined }))),
    ],
  },
  'Chat Completions': {
    ...CHAT,
    body: (steps) => {
      const { messages, ...rest } = CHAT.body(steps) as { messages: object[] }
      return { ...rest, messages: [{ role: 'system', content: SYSTEM.slice(0, 3300) }, ...messages.slice(1)] }
    },
  },
}

test.each(Object.entries(SHORT))(
  '%s, a host with a short system prompt whose first message changes with each call: its cost is the true one within 2 %%',
  async (name, format) => {
    const { claimed, without, rolls } = await claimAndTruth(format, HOSTS['whose first message changes with each call'] as Host)
    process.stderr.write(`${name}: said $${claimed.toFixed(4)} beside $${without.toFixed(4)} (${(100 * (claimed / without - 1)).toFixed(2)} %)\n`)
    expect(rolls).toBeGreaterThan(0)
    expect(Math.abs(claimed / without - 1)).toBeLessThan(0.02)
  },
)
