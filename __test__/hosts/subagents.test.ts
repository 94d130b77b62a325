/** A subagent can bring back what its prompt names, and nothing else of its parent's. */
import { afterEach, expect, test } from 'vitest'
import { folder, FILESYSTEM, sqlite } from '../core/setup.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { calls } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/exchange.ts'
import { drivers } from './drivers.ts'
import { output } from './script.ts'

afterEach(cleanUp)

const MODEL = { name: 'scripted', contextWindow: 200_000, input: 1, cacheRead: 0.1, cacheWrite: 1.25 }

/** The parent shows and delegates; the child brings back each id of its prompt, those it was not handed included. */
function script({ messages, n }: ModelRequest) {
  const at = messages.findLastIndex(({ role, text }) => role === 'user' && /^(show|delegate|child) /.test(text))
  const [verb, ...words] = messages[at]!.text.split(' ')
  const answered = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  const word = words[answered]
  if (word === undefined || (verb === 'delegate' && answered > 0)) return `done ${n}`
  if (verb === 'show') return calls(['show', { name: word }, `call_${n}`])
  if (verb === 'child') return calls(['activate', { id: word.replace('id=', '') }, `call_${n}`])
  return calls(['delegate', { input: `child ${words.join(' ')}` }, `call_${n}`])
}

test.each(Object.keys(drivers))('%s', async (host) => {
  const server = await startModelServer(script)
  const warnings: string[] = []
  const onWarning = (text: string) => warnings.push(text)
  const context = {
    sessionId: 'parent',
    stay: { weight: 0.3 },
    cwd: folder(),
    store: sqlite(),
    filesystemId: FILESYSTEM,
    watch: false,
    model: MODEL,
    onWarning,
  }
  const parent = await drivers[host]!({ url: server.baseUrl('openai-completions'), context, show: output, childId: 'child' })
  onCleanUp(() => parent.context?.close())
  onCleanUp(() => parent.child?.close())
  for (let n = 0; n < 8; n += 1) await parent.prompt(`show n${n} m${n}`)
  const shown = server.requests.at(-1)!.messages.flatMap(({ results }) => results)
  const handles = shown.flatMap(({ text }) => /^toolcall_ref id=(\S+)/.exec(text)?.[1] ?? [])
  expect(handles.length).toBeGreaterThan(2)
  const [handed, other] = handles as [string, string]
  // The second is named without its "id=": the child is not handed it, but its model guesses it.
  await parent.prompt(`delegate id=${handed} ${other}`)
  server.check()
  const isChild = ({ messages }: ModelRequest) => messages.some(({ role, text }) => role === 'user' && text.startsWith('child '))
  const answers = server.requests.findLast(isChild)!.messages.flatMap(({ results }) => results.map(({ text }) => text))
  expect(answers).toEqual([output('n0'), expect.stringContaining(`no object of this session has the id ${other}`)])
  expect(server.requests.findLast(isChild)!.tools).toEqual(['activate'])

  const [mother, daughter] = [(await parent.context!.manager())!, (await parent.child!.manager())!]
  const id = (await mother.get(handed))!['xt/id']
  expect((await daughter.get(handed))!['xt/id']).toBe(id)
  const own = (await daughter.sessionSets()).sessionIndex
  expect(own).toContain(id)
  expect(own.filter((one) => one !== id && !one.startsWith('call_'))).toEqual([])
  // The subagent's messages are not in the parent's conversation.
  expect(JSON.stringify(await mother.get('chat:parent'))).not.toContain('"content":"child ')
  expect(warnings).toEqual([])
})
