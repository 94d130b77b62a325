/** Gemini's format through the gateway, against a provider that refuses as the API does. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { openAny } from '../../lib/recordings/open.ts'
import { chargesOf } from '../../lib/usage/charges.ts'
import type { Charge } from '../../lib/usage/charges.ts'
import { folder } from '../core/setup.ts'
import { gemini } from '../../lib/projection/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import type { ModelServer } from '../../rig/model-server.ts'
import type { ScriptedCall } from '../../rig/exchange.ts'
import { agentNamed } from './agents.ts'
import { Workplace } from './workplace.ts'
import { ask, broughtBack, gatewayTo, JSON_TYPE, lasting, long } from './support.ts'
import { rewritten } from '../../rig/checks.ts'

afterEach(cleanUp)

const TOOLS = [
  {
    functionDeclarations: ['run_shell_command', 'read_file', 'write_file', 'mcp_context_activate'].map((name) => ({
      name,
      description: name,
      parametersJsonSchema: { type: 'object' },
    })),
  },
]

/** The path of a streamed request of a program that is logged in with Google. */
const WRAPPED = '/v1internal:streamGenerateContent?alt=sse'

/** A loop around a model, as Gemini CLI runs one. Its calls come from the model. */
class GeminiLoop {
  readonly contents: any[] = []
  readonly url: string
  /** The path of a streamed request. */
  path = '/v1beta/models/gemini-3.1-pro:streamGenerateContent?alt=sse'
  folder = '/nowhere'

  constructor(gateway: { url: string }) {
    this.url = gateway.url
  }

  /** The program is logged in with Google: its requests are in an envelope. */
  get isWrapped(): boolean {
    return this.path.includes('/v1internal:')
  }

  /** Writes the fields with underscores, as litellm does. */
  isSnake = false

  get body(): object {
    if (this.isWrapped) return { model: 'gemini-3.1-pro', project: 'p', user_prompt_id: 'u', request: { ...this.bare, session_id: '5d0f-wrapped' } }
    return this.bare
  }

  get bare(): object {
    const instruction = { role: 'user', parts: [{ text: `You are a test. The working directory is: ${this.folder}` }] }
    const generationConfig = { temperature: 1, thinkingConfig: { includeThoughts: true } }
    if (!this.isSnake) return { contents: this.contents, systemInstruction: instruction, tools: TOOLS, generationConfig }
    const tools = TOOLS.map(({ functionDeclarations }) => ({ function_declarations: functionDeclarations }))
    return { contents: this.contents.map(snaked), system_instruction: instruction, tools, generationConfig }
  }

  /** A prompt, and all calls that the model makes for it; `output` gives what a call came to. */
  async turn(prompt: string, output: (call: any) => string): Promise<void> {
    this.contents.push({ role: 'user', parts: [{ text: prompt }] })
    for (;;) {
      const answer = await this.send()
      this.contents.push({ role: 'model', parts: answer })
      const calls = answer.flatMap(({ functionCall: call }) => (call === undefined ? [] : [call]))
      if (calls.length === 0) return
      this.contents.push({
        role: 'user',
        parts: calls.map((call) => ({ functionResponse: { id: call.id, name: call.name, response: { output: output(call) } } })),
      })
    }
  }

  /** Sends the conversation, and returns the parts of the answer. */
  async send(): Promise<any[]> {
    const headers = { ...JSON_TYPE, 'user-agent': 'GeminiCLI/0.61.0/gemini-3.1-pro (linux; x64)', 'x-goog-api-key': 'secret' }
    const { status, text } = await ask(`${this.url}${this.path}`, { headers, body: JSON.stringify(this.body) })
    if (status !== 200) throw new Error(`${status}: ${text}`)
    const chunks = text.startsWith('{')
      ? [JSON.parse(text)]
      : text
          .split('\r\n\r\n')
          .filter((one) => one !== '')
          .map((one) => JSON.parse(one.slice('data: '.length)))
    const answers = this.isWrapped ? chunks.map(({ response }) => response) : chunks
    return answers.flatMap((answer) => answer.candidates[0].content.parts).filter((part: any) => part.thought !== true)
  }
}

/** A content whose parts have underscores in their names. */
function snaked({ role, parts }: { role: string; parts: object[] }): object {
  const name = (one: string): string => one.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return { role, parts: parts.map((part) => Object.fromEntries(Object.entries(part).map(([key, value]) => [name(key), value]))) }
}

/** A model that calls the shell some times for each prompt, and then is done. */
function script(perTurn: number, call: (n: number) => ScriptedCall = (n) => ({ name: 'run_shell_command', args: { command: `cat n${n}` } })) {
  let made = 0
  return ({ messages }: { messages: readonly { role: string }[] }) => {
    const said = messages.findLastIndex(({ role }) => role === 'user')
    const done = messages.slice(said).filter(({ role }) => role === 'tool').length
    return done < perTurn ? { thinking: 'hm', calls: [call((made += 1))] } : 'done'
  }
}

const output = (call: any): string => long(String(call.args.command ?? call.args.file_path).replace('cat ', ''), 60)

/** Requests that do not continue the previous one; `isPrompt` says if each of them begins a turn. */
function breaks(server: ModelServer): { n: number; isPrompt: boolean }[] {
  return rewritten(server.requests).map(({ n, messages }) => ({ n, isPrompt: messages.findLast(({ role }) => role !== 'system')?.role === 'user' }))
}

const RESPONSE = { functionResponse: { name: 'run', response: { output: 'x' } } }
test.each<[what: string, parts: object[], isHeld: boolean]>([
  ['a prompt', [{ text: 'look again' }], false],
  ['a result', [RESPONSE], true],
  ['a result, and what the user has said while its tool ran', [RESPONSE, { text: 'look again' }], true],
  ['the same with underscores', [{ function_response: RESPONSE.functionResponse }, { text: 'look again' }], true],
])('a request that ends with %s', (_, parts, isHeld) => {
  expect(gemini.isHeld?.([{ role: 'user', parts }])).toBe(isHeld)
})

describe('Gemini', () => {
  test.each<[string, object]>([
    ['with a key', {}],
    ['with underscores', { isSnake: true }],
    ['with a login at Google', { path: WRAPPED }],
  ])('a long session costs 0.6 at most, changes only between turns, is never refused, and loses nothing; %s', async (_, kind) => {
    const server = await startModelServer(script(6))
    const { gateway, warnings } = await gatewayTo(server.url)
    const loop = Object.assign(new GeminiLoop(gateway), kind)
    let plain = 0
    for (let turn = 0; turn < 10; turn += 1) {
      await loop.turn(`prompt ${turn}`, output)
      plain += JSON.stringify(loop.contents).length * 7
    }
    expect(server.problems).toEqual([])
    expect(warnings).toEqual([])
    expect(server.requests.filter(({ status }) => status !== 200)).toEqual([])
    const [sums] = gateway.ledger.sessions
    expect(sums!.rolls.length).toBeGreaterThan(0)
    const found = breaks(server)
    expect(found.length).toBeLessThanOrEqual(sums!.rolls.length)
    expect(found.every(({ isPrompt }) => isPrompt)).toBe(true)
    const sent = server.requests.reduce((sum, { raw }) => sum + raw.length, 0)
    expect(sent / plain).toBeLessThan(0.6)
    // Every collapsed output can be restored, byte for byte.
    const texts = await broughtBack(gateway, server.requests.at(-1)!)
    expect(texts.length).toBeGreaterThan(0)
    const wanted = new Set(
      loop.contents.flatMap(({ parts }) => parts.flatMap(({ functionResponse: one }: any) => (one === undefined ? [] : [one.response.output]))),
    )
    for (const text of texts) expect(wanted).toContain(text)
    expect(sums!.host).toBe('gemini-cli')
    expect(sums!.model).toBe('gemini-3.1-pro')
  })

  test('a login with Google is a plan, names its session, and nothing of its envelope changes', async () => {
    const server = await startModelServer(script(6))
    const { gateway } = await gatewayTo(server.url, { upstreams: { anthropic: server.url } })
    const loop = Object.assign(new GeminiLoop({ url: `${gateway.url}/${server.url}` }), { path: WRAPPED.slice(0) })
    for (let turn = 0; turn < 8; turn += 1) await loop.turn(`prompt ${turn}`, output)
    const [sums, ...others] = gateway.ledger.sessions
    expect(others).toEqual([])
    expect(sums!.rolls.length).toBeGreaterThan(0)
    expect(sums!.billed.input + sums!.billed.cacheRead).toBe(server.requests.reduce((sum, { usage }) => sum + usage!.input + usage!.cacheRead, 0))
    expect([sums!.session, sums!.isPlan]).toEqual(['gemini-cli:5d0f-wrapped', true])
    const last = JSON.parse(server.requests.at(-1)!.raw.toString('utf8'))
    const { contents, ...rest } = last.request
    const { contents: own, ...expected } = loop.bare as { contents: object[] }
    expect(contents).not.toEqual(own.slice(0, contents.length))
    expect({ ...last, request: rest }).toEqual({
      model: 'gemini-3.1-pro',
      project: 'p',
      user_prompt_id: 'u',
      request: { ...expected, session_id: '5d0f-wrapped' },
    })
  })

  test("the bill is the answer's: what was cached is a part of the prompt, and thoughts are apart", async () => {
    const server = await startModelServer(() => ({ text: 'ok', usage: { input: 700, cacheRead: 300, cacheWrite: 0, output: 40 } }))
    const { gateway } = await gatewayTo(server.url)
    for (const path of [
      '/v1beta/models/gemini-3.1-pro:streamGenerateContent?alt=sse',
      '/v1beta/models/gemini-3.1-pro:generateContent',
      '/gemini/v1beta/models/gemini-3.1-pro:generateContent',
    ]) {
      const loop = Object.assign(new GeminiLoop(gateway), { path })
      loop.contents.push({ role: 'user', parts: [{ text: path }] })
      await loop.send()
    }
    expect(gateway.ledger.sessions.map(({ billed }) => billed)).toEqual(
      Array.from({ length: gateway.ledger.sessions.length }, () => expect.objectContaining({ cacheRead: expect.any(Number) })),
    )
    const all = gateway.ledger.sessions.reduce((sum, { billed }) => sum + billed.input + billed.cacheRead + billed.output, 0)
    expect(all).toBe(3 * 1040)
  })

  test('a second gateway continues the form of the first, and a question on the side passes unchanged', async () => {
    const server = await startModelServer(script(6))
    const place = lasting()
    const upstreams = { anthropic: server.url, gemini: server.url }
    const first = await gatewayTo(server.url, { ...place, upstreams })
    const loop = new GeminiLoop(first.gateway)
    for (let turn = 0; turn < 8; turn += 1) await loop.turn(`prompt ${turn}`, output)
    expect(first.gateway.ledger.sessions[0]!.rolls.length).toBeGreaterThan(0)
    await first.gateway.close()
    const second = await gatewayTo(server.url, { ...place, upstreams })
    const size = server.requests.at(-1)!.raw.length
    const later = Object.assign(new GeminiLoop(second.gateway), { contents: loop.contents })
    await later.turn('once more', output)
    expect(server.requests.at(-7)!.raw.length).toBeLessThan(size + 5_000)
    const aside = { contents: [{ role: 'user', parts: [{ text: 'Who speaks next?' }] }], generationConfig: { responseMimeType: 'application/json' } }
    await ask(`${second.gateway.url}/v1beta/models/gemini-3.1-flash:generateContent`, { headers: JSON_TYPE, body: JSON.stringify(aside) })
    expect(JSON.parse(server.requests.at(-1)!.raw.toString('utf8'))).toEqual(aside)
    expect(server.problems).toEqual([])
  })

  test('the change of a file is told with the next prompt, not within a turn', async () => {
    const place = folder()
    mkdirSync(join(place, 'src'))
    const file = join(place, 'src', 'a.ts')
    writeFileSync(file, long('a', 30))
    const read = (n: number): ScriptedCall =>
      n === 1 ? { name: 'read_file', args: { file_path: file } } : { name: 'run_shell_command', args: { command: `echo ${n}` } }
    const server = await startModelServer(script(4, read))
    const { gateway } = await gatewayTo(server.url)
    const loop = Object.assign(new GeminiLoop(gateway), { folder: place })
    await loop.turn('read it', (call) => {
      if (call.name === 'read_file') return long('a', 30)
      // Another program changes it in the middle of the turn.
      writeFileSync(file, long('b', 30))
      return 'x'
    })
    const within = server.requests.length
    await loop.turn('continue', () => 'x')
    // The prompt is also where the text that it saw leaves; then the line in its place says so, and no notice is due.
    const tells = (from: number, to?: number): number =>
      server.requests.slice(from, to).filter(({ raw }) => /stale id=|-> lines 1-30, changed since/.test(String(raw))).length
    expect(tells(0, within)).toBe(0)
    expect(tells(within)).toBe(server.requests.length - within)
    expect(server.problems).toEqual([])
    expect(server.requests.filter(({ status }) => status !== 200)).toEqual([])
  })
})

const START = fileURLToPath(new URL('../../dist/cli/start.js', import.meta.url))
const cli = agentNamed('gemini')

test.skipIf(cli === undefined).each([
  ['key', false],
  ['google', false],
  ['vertex', false],
  ['key', true],
] as const)(
  'Gemini CLI works through "run" with a login by %s: its tools and ours, a resume, and no refused request; held out: %s',
  { timeout: 600_000 },
  async (login, isHeldOut) => {
    const server = await startModelServer(({ messages, tools }) => {
      if (tools.length < 5) return 'fine'
      const said = messages.findLastIndex(({ role }) => role === 'user')
      const done = messages.slice(said).filter(({ role }) => role === 'tool').length
      return done < 6 ? { calls: [cli!.shell(`cat n${done}.txt`)] } : 'done'
    })
    const place = new Workplace(Object.assign(cli!, { login }), server.url, isHeldOut ? ['--holdout', '100%'] : [])
    for (let n = 0; n < 6; n += 1) writeFileSync(join(place.cwd, `n${n}.txt`), long(`n${n}`, 40))
    for (const goesOn of [false, true]) {
      const from = server.requests.length
      const { code, stderr } = await place.ask('read them', goesOn)
      expect(code, stderr.slice(-2000)).toBe(0)
      const own = server.requests.slice(from).filter(({ tools }) => tools.length > 4)
      expect(own.length).toBe(7)
      expect(own[0]!.tools).toContain('mcp_context_activate')
      expect(rewritten(own)).toEqual([])
    }
    expect(server.problems.filter((problem) => !/unexpected (?:GET|POST)/.test(problem))).toEqual([])
    expect(server.requests.filter(({ status }) => status !== 200)).toEqual([])
    // Its own file has the same counts.
    const own = server.requests.filter(({ tools }) => tools.length > 4).map(({ usage }) => usage!)
    const sent = own.reduce((sum, { input, cacheRead }) => sum + input + cacheRead, 0)
    const chats = join(place.home, '.gemini', 'tmp', 'project', 'chats')
    const [file = ''] = readdirSync(chats)
    const charges: Charge[] = []
    for await (const charge of chargesOf(await openAny(join(chats, file)), new Set())) charges.push(charge)
    expect(charges.map(({ tokens }) => tokens.input + tokens.cacheRead)).toEqual(own.map(({ input, cacheRead }) => input + cacheRead))
    if (!isHeldOut) return
    // Its requests as they left it can be rebuilt, with the results that a resume sends twice. (A resumed session may roll.)
    const replayed = await place.run(process.execPath, [START, 'replay', '--json', join(chats, file)])
    const { tokensSent } = JSON.parse(replayed.stdout).sessions[0].policies.recorded
    expect(tokensSent / sent).toBeGreaterThan(0.97)
    expect(tokensSent / sent).toBeLessThan(1.03)
  },
)
