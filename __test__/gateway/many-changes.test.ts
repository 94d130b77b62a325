/** A change of branch changes many files that the model has read at once: one line names a list, which our tool gives the model. */
import { writeFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { folder, write } from '../core/setup.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { AnthropicLoop, callTool, gatewayTo, lasting } from './support.ts'

afterEach(cleanUp)

/** More files than there is room for, with a line for each. */
const FILES = 180

/** Long enough for a busy machine: a request that could not wait has no notices. */
const LIMIT_MS = 120_000

/** The most that is added to one request. */
const MOST = 10_500

test.each([false, true])('the ID of a list brings back the rest of the changes; in a new gateway: %s', async (isRestarted) => {
  const server = await startModelServer(() => 'ok')
  const place = { ...lasting(), limitMs: LIMIT_MS }
  const first = (await gatewayTo(server.url, place)).gateway
  const loop = new AnthropicLoop(first)
  const cwd = folder()
  const paths = Array.from({ length: FILES }, (_, n) => write(cwd, `folder of sources/file ${n}.txt`, `text ${n}\n`))
  loop.messages.push({ role: 'user', content: [{ type: 'text', text: 'read all of them' }] })
  const calls = paths.map((path, n) => ({ type: 'tool_use', id: `toolu_${n}`, name: 'Read', input: { file_path: path } }))
  loop.messages.push({ role: 'assistant', content: calls })
  loop.messages.push({ role: 'user', content: calls.map(({ id }, n) => ({ type: 'tool_result', tool_use_id: id, content: `     1\ttext ${n}\n` })) })
  await loop.send()
  loop.messages.push({ role: 'assistant', content: [{ type: 'text', text: 'done' }] })
  paths.forEach((path, n) => writeFileSync(path, `another text ${n}\n`))
  await (await first.conversations.all[0]!.session()).manager.flush()
  await loop.prompt('next')
  const sent = server.requests.at(-1)!.raw.toString()
  const added = JSON.stringify((JSON.parse(sent) as { messages: object[] }).messages).length - JSON.stringify(loop.messages).length
  expect(added).toBeLessThan(MOST)
  const [, count, id] = /stale more=(\d+): [^"]*?id=([0-9a-f]{11}) lists them/.exec(sent) as RegExpExecArray
  const alone = sent.match(/stale id=/g)?.length ?? 0
  expect(alone + Number(count)).toBe(FILES)
  let gateway = first
  if (isRestarted) {
    await first.close()
    gateway = (await gatewayTo(server.url, place)).gateway
    await Object.assign(new AnthropicLoop(gateway), { messages: loop.messages }).prompt('and on')
  }
  const list = await callTool(gateway, 'activate', { id }, { sessionId: loop.session })
  expect(list.split('\n')).toHaveLength(Number(count))
  for (const path of paths) expect([sent, list].filter((text) => text.includes(`path=${path} `))).toHaveLength(1)
})
