/** The result of an edit in each shape: a text shortened or left out, other arguments, a part or all of it gone. */
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { describe, expect, test } from 'vitest'
import type { Shape } from '../lib/projection/harness.ts'
import type { PartEdit } from '../lib/projection/driver/edits.ts'
import { shapeNamed } from '../lib/projection/shapes.ts'
import { langchain } from '../lib/hosts/langchain.ts'
import { opencodeShape } from '../lib/hosts/opencode-shape.ts'
import { shapes, shown, written } from './hosts/conversation.ts'
import type { Step } from './hosts/conversation.ts'

const STEP: Step = {
  reasoning: 'a thought',
  text: 'a long answer',
  calls: [
    { id: 'c0', name: 'write', args: { path: 'a', content: 'all of it' }, output: 'first output' },
    { id: 'c1', name: 'bash', args: { command: 'b' }, output: 'second output' },
  ],
}
const USER: Step = { user: 'a long prompt' }

/** The same step in the words of hosts that have a shape of their own. */
const OWN: Record<string, { shape: Shape; write(step: Step): object[] }> = {
  langchain: {
    shape: langchain,
    write: (step) =>
      'user' in step
        ? [new HumanMessage({ content: step.user, id: 'u' })]
        : [
            new AIMessage({
              id: 'a',
              content: [
                { type: 'thinking', thinking: step.reasoning, signature: 'signed' },
                { type: 'tool_use', id: 'c0', name: 'write', input: step.calls[0]!.args },
                { type: 'text', text: step.text },
                { type: 'tool_use', id: 'c1', name: 'bash', input: step.calls[1]!.args },
              ] as never,
              tool_calls: step.calls.map(({ id, name, args }) => ({ id, name, args })),
            }),
            ...step.calls.map(({ id, output }) => new ToolMessage({ tool_call_id: id, content: output })),
          ],
  },
  opencode: {
    shape: opencodeShape(() => false),
    write: (step) =>
      'user' in step
        ? [{ info: { id: 'm1', role: 'user', sessionID: 's' }, parts: [{ type: 'text', text: step.user }] }]
        : [
            {
              info: { id: 'm2', role: 'assistant', sessionID: 's' },
              parts: [
                { type: 'step-start' },
                { type: 'reasoning', text: step.reasoning, metadata: { anthropic: { signature: 'signed' } } },
                { type: 'text', text: step.text },
                ...step.calls.map(({ id, name, args, output }) => ({
                  type: 'tool',
                  callID: id,
                  tool: name,
                  state: { status: 'completed', input: args, output },
                })),
              ],
            },
          ],
  },
}

const ALL: [string, Shape, (step: Step) => object[]][] = [
  ...shapes.map((name): [string, Shape, (step: Step) => object[]] => [name, shapeNamed(name), (step) => written[name](step, 0)]),
  ...Object.entries(OWN).map(([name, { shape, write }]): [string, Shape, (step: Step) => object[]] => [name, shape, write]),
]

/** Every part of some messages, with a way to write them with edits of parts by their number among all. */
function parted(shape: Shape, messages: readonly object[]) {
  const readings: { given: object[]; parts: readonly any[]; first: number }[] = []
  for (let at = 0, first = 0; at < messages.length;) {
    const { size, parts } = shape.read(messages, at)
    readings.push({ given: messages.slice(at, at + size), parts, first })
    at += size
    first += parts.length
  }
  const parts = readings.flatMap((one) => one.parts)
  const write = (edits: ReadonlyMap<number, PartEdit>): any[] =>
    readings.flatMap((one) => {
      const own = [...edits].filter(([number]) => number >= one.first && number < one.first + one.parts.length)
      return shape.write(one.given, new Map(own.map(([number, edit]) => [number - one.first, edit])))
    })
  return { parts, write }
}

const blockOf = (part: { content: { type: string; text?: string }[] }, text: string): number => part.content.findIndex((block) => block.text === text)
/** Returns the content of sent messages: for LangChain's instances, the fields that their provider's adapter reads. */
const words = (messages: readonly any[]): string =>
  JSON.stringify(
    messages.map((one) =>
      one.getType === undefined ? one : { type: one.getType(), id: one.id, content: one.content, calls: one.tool_calls, of: one.tool_call_id },
    ),
  )

describe.each(ALL)('%s', (_, shape, write) => {
  test('without an edit nothing changes', () => {
    const messages = [...write(USER), ...write(STEP)]
    expect(parted(shape, messages).write(new Map())).toEqual(messages)
  })

  test('a text of an answer is shortened, or left out, and all else stays', () => {
    const messages = write(STEP)
    const before = words(messages)
    const { parts, write: put } = parted(shape, messages)
    const block = blockOf(parts[0], 'a long answer')
    const short = put(new Map([[0, { kind: 'message', calls: [], texts: [{ block, text: 'short' }] }]]))
    expect(words(short)).toBe(before.replace('a long answer', 'short'))
    const without = put(new Map([[0, { kind: 'message', calls: [], texts: [{ block }] }]]))
    expect(words(without)).not.toContain('a long answer')
    for (const one of ['c0', 'c1', 'all of it', 'first output', 'second output']) expect(words(without)).toContain(one)
    expect(words(messages), 'the host keeps its own').toBe(before)
  })

  test('arguments and a text at once', () => {
    const messages = write(STEP)
    const { parts, write: put } = parted(shape, messages)
    const edit: PartEdit = {
      kind: 'message',
      calls: [{ callId: 'c0', position: 0, args: { path: 'a' } }],
      texts: [{ block: blockOf(parts[0], 'a long answer'), text: 'short' }],
    }
    const sent = put(new Map([[0, edit]]))
    expect(words(sent)).not.toMatch(/all of it|a long answer/)
    expect(words(sent)).toMatch(/short/)
    expect(words(sent)).toContain('second output')
  })

  test('arguments keep the order of the model', () => {
    const own = {
      path: 'a',
      edits: [
        { oldText: 'long 1', newText: 'x' },
        { oldText: 'long 2', newText: 'y' },
      ],
      dryRun: { b: 1, a: [{ d: 1, c: 'long 3' }] },
    }
    const step: Step = { ...(STEP as Step & object), calls: [{ id: 'c0', name: 'multiedit', args: own, output: 'done' }, ...(STEP as any).calls.slice(1)] }
    // The engine gives them in the order of its record, which is that of the alphabet.
    const args = {
      dryRun: { a: [{ c: 'short 3', d: 1 }], b: 1 },
      edits: [
        { newText: 'x', oldText: 'short 1' },
        { newText: 'y', oldText: 'short 2' },
      ],
      path: 'a',
    }
    const { write: put } = parted(shape, write(step))
    const sent = words(put(new Map([[0, { kind: 'message', calls: [{ callId: 'c0', position: 0, args }], texts: [] }]])))
    expect(sent).toBe(words(write(step)).replaceAll('long 1', 'short 1').replaceAll('long 2', 'short 2').replaceAll('long 3', 'short 3'))
  })

  test('a long text of a user’s is shortened', () => {
    const messages = write(USER)
    const { write: put } = parted(shape, messages)
    const sent = put(new Map([[0, { kind: 'message', calls: [], texts: [{ block: 0, text: 'short' }] }]]))
    expect(words(sent)).toBe(words(messages).replace('a long prompt', 'short'))
  })

  test('an answer leaves with its results, and nothing else does', () => {
    const messages = [...write(USER), ...write(STEP)]
    const { parts, write: put } = parted(shape, messages)
    const gone = new Map(parts.flatMap(({ role }, number): [number, PartEdit][] => (role === 'user' ? [] : [[number, { kind: 'gone' }]])))
    expect(gone.size).toBe(3)
    expect(put(gone)).toEqual(write(USER))
  })
})

test.each(shapes)('%s: the reasoning keeps its signature beside a text that is shortened', (name) => {
  const { parts, write: put } = parted(shapeNamed(name), written[name](STEP, 0))
  const sent = put(new Map([[0, { kind: 'message', calls: [], texts: [{ block: blockOf(parts[0], 'a long answer'), text: 'short' }] }]]))
  if (name === 'openai-chat') return expect(shown(sent).get('c0')?.text).toBe('first output')
  expect(words(sent)).toContain(Buffer.from('signature of a thought').toString('base64'))
})

test('Anthropic: a user message after results is shortened there, and a result that leaves takes none of it along', () => {
  const results = [
    { type: 'tool_result', tool_use_id: 'c0', content: 'one' },
    { type: 'tool_result', tool_use_id: 'c1', content: 'two' },
  ]
  const message = { role: 'user', content: [...results, { type: 'text', text: 'first' }, { type: 'text', text: 'a long prompt' }] }
  const { write: put } = parted(shapeNamed('anthropic'), [message])
  const edits = new Map<number, PartEdit>([
    [0, { kind: 'gone' }],
    [1, { kind: 'gone' }],
    [2, { kind: 'message', calls: [], texts: [{ block: 1, text: 'short' }] }],
  ])
  expect(put(edits)).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'first' },
        { type: 'text', text: 'short' },
      ],
    },
  ])
})

test('OpenCode’s file tools: the engine has its own words for their arguments, the model sees those that it gave', () => {
  const { shape } = OWN['opencode']!
  const tool = (name: string, input: object) => ({ type: 'tool', callID: name, tool: name, state: { status: 'completed', input, output: 'done' } })
  const inputs = { write: { filePath: 'a', content: 'long' }, edit: { filePath: 'b', oldString: 'c', newString: 'd' }, bash: { path: 'e', filePath: 'f' } }
  const message = { info: { id: 'm', role: 'assistant', sessionID: 's' }, parts: Object.entries(inputs).map(([name, input]) => tool(name, input)) }
  const { parts, write } = parted(shape, [message])
  expect(parts[0].content.map(({ arguments: given }: any) => given)).toEqual(Object.values(inputs))
  expect(parts[0].content.map((block: any) => block.engineArguments)).toEqual([
    { path: 'a', content: 'long' },
    { path: 'b', oldText: 'c', newText: 'd' },
    undefined,
  ])
  const args = [{ path: 'a', content: 'short' }, { path: 'b', oldText: 'x', newText: 'y' }, { path: 'z' }]
  const calls = Object.keys(inputs).map((callId, position) => ({ callId, position, args: args[position]! }))
  const [sent] = write(new Map([[0, { kind: 'message', calls, texts: [] }]]))
  expect(sent.parts.map(({ state }: any) => state.input)).toEqual([
    { filePath: 'a', content: 'short' },
    { filePath: 'b', oldString: 'x', newString: 'y' },
    { path: 'z' },
  ])
})

test('OpenCode’s reads: the lines as the file has them, unless OpenCode shows others', () => {
  const read = (callID: string, text: string, type = 'file') => ({
    type: 'tool',
    callID,
    tool: 'read',
    state: { status: 'completed', input: { filePath: 'a' }, output: `1: ${text}`, metadata: { display: { type, text } } },
  })
  const parts = [read('plain', 'one'), read('cut', 'xx... (line truncated to 2000 chars)'), read('altered', 'one'), read('folder', '', 'directory')]
  const message = { info: { id: 'm', role: 'assistant', sessionID: 's' }, parts }
  const {
    parts: [answer, ...results],
  } = opencodeShape((callId) => callId === 'altered').read([message], 0)
  expect(results.map(({ lines }) => lines)).toEqual(['one', undefined, undefined, undefined])
  expect(results.map(({ content }) => (content as any)[0].text)).toEqual(parts.map(({ state }) => state.output))
  expect((answer!.content as any[]).map(({ engineArguments }) => engineArguments)).toEqual([{ path: 'a' }, undefined, undefined, undefined])
})
