/** A subagent can bring back what its prompt names, and nothing else of its parent's. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { isStepCount, jsonSchema, streamText, tool } from 'ai'
import type { ModelMessage } from 'ai'
import { afterEach, expect, test } from 'vitest'
import { contextFor } from '../../lib/hosts/ai-sdk.ts'
import type { AiSdkContext } from '../../lib/hosts/ai-sdk.ts'
import { folder, FILESYSTEM, sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../rig/cleanup.ts'
import { startModelServer } from '../rig/model-server.ts'
import { calls } from '../rig/reply.ts'
import type { ModelRequest } from '../rig/request.ts'
import { output } from './script.ts'

afterEach(cleanUp)

const MODEL = { name: 'scripted', contextWindow: 200_000, input: 1, cacheRead: 0.1, cacheWrite: 1.25 }

/** The parent shows and delegates; the child brings back each id of its prompt, those it was not handed included. */
function script(request: ModelRequest) {
  const { messages, n } = request
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(show|delegate|child) /.test(text))
  const [verb, ...words] = messages[at]!.text.split(' ')
  const answered = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  const word = words[answered]
  if (word === undefined || (verb === 'delegate' && answered > 0)) return `done ${n}`
  if (verb === 'show') return calls(['show', { name: word }, `call_${n}`])
  if (verb === 'child') return calls(['activate', { id: word.replace('id=', '') }, `call_${n}`])
  return calls(['delegate', { task: `child ${words.join(' ')}` }, `call_${n}`])
}

test('the AI SDK’s nested agents', async () => {
  const server = await startModelServer(script)
  const model = createOpenAICompatible({ name: 'scripted', baseURL: server.baseUrl('openai-completions'), apiKey: 'none' })('scripted')
  const parent = contextFor({ sessionId: 'parent', cwd: folder(), store: sqlite(), filesystemId: FILESYSTEM, watch: false, model: MODEL })
  onCleanUp(() => parent.close())
  const child = parent.child({ sessionId: 'child' })
  onCleanUp(() => child.close())
  const agent = (context: AiSdkContext, messages: ModelMessage[], tools = {}) =>
    streamText({ model, messages, tools: { ...tools, ...context.tools }, prepareStep: context.prepareStep, stopWhen: isStepCount(50), maxRetries: 0 })
  const show = tool({
    description: 'Shows a text',
    inputSchema: jsonSchema<{ name: string }>({ type: 'object', properties: { name: { type: 'string' } } }),
    execute: ({ name }) => output(name),
  })
  const answers: string[] = []
  const delegate = tool({
    description: 'Starts a subagent',
    inputSchema: jsonSchema<{ task: string }>({ type: 'object', properties: { task: { type: 'string' } } }),
    execute: async ({ task }) => {
      const result = agent(child, [{ role: 'user', content: task }])
      await result.consumeStream()
      for (const message of await result.responseMessages) {
        if (message.role !== 'tool') continue
        for (const part of message.content) if (part.type === 'tool-result') answers.push(String((part.output as { value: unknown }).value))
      }
      return 'it is done'
    },
  })
  const history: ModelMessage[] = []
  const prompt = async (text: string) => {
    history.push({ role: 'user', content: text })
    const result = agent(parent, history, { show, delegate })
    await result.consumeStream()
    history.push(...(await result.responseMessages))
  }
  for (let n = 0; n < 8; n += 1) await prompt(`show n${n} m${n}`)
  const shown = server.requests.at(-1)!.messages.flatMap(({ results }) => results)
  const handles = shown.flatMap(({ text }) => /^toolcall_ref id=(\S+)/.exec(text)?.[1] ?? [])
  expect(handles.length).toBeGreaterThan(2)
  const [handed, other] = handles as [string, string]
  // The second is named without its "id=": the child is not handed it, but its model guesses it.
  await prompt(`delegate id=${handed} ${other}`)
  server.check()
  expect(answers).toEqual([output('n0'), expect.stringContaining(`no object of this session has the id ${other}`)])
  const [mother, daughter] = [(await parent.context.manager())!, (await child.context.manager())!]
  const id = (await mother.get(handed))!['xt/id']
  expect((await daughter.sessionSets()).session_index).toContain(id)
  expect((await daughter.get(handed))!['xt/id']).toBe(id)
  const own = (await daughter.sessionSets()).session_index
  expect(own.filter((one) => one !== id && !one.startsWith('call_'))).toEqual([])
})
