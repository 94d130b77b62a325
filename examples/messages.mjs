// Your own loop, with messages in a provider's shape: node examples/messages.mjs "What does package.json say?"
// Needs: npm install pi-context-manager, and OPENAI_BASE_URL, OPENAI_API_KEY, MODEL. Plain JavaScript on Node 20.
import { readFile } from 'node:fs/promises'
import { ContextManager } from 'pi-context-manager'

const { OPENAI_BASE_URL: baseURL = 'https://api.openai.com/v1', OPENAI_API_KEY: key = '', MODEL = 'gpt-5' } = process.env

const manager = await ContextManager.open({
  sessionId: `messages-${process.pid}`,
  cwd: process.cwd(),
  model: { name: MODEL, contextWindow: 400_000, input: 1.25, cacheRead: 0.125, cacheWrite: 1.25 },
})

const declare = (name, description, field) => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] } },
})
const tools = [declare('read', 'Reads a file', 'path'), declare('activate', 'Brings back a collapsed tool output by the id in its toolcall_ref line', 'id')]
const execute = async (name, args) => {
  if (name === 'read') return readFile(args.path, 'utf8')
  const { content, message } = await manager.activate(args.id)
  return content ?? message
}

const messages = [{ role: 'user', content: process.argv[2] ?? 'What does package.json say?' }]
for (;;) {
  // The loop keeps its own messages and sends their projection.
  const body = JSON.stringify({ model: MODEL, messages: await manager.transformContext(messages), tools })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  const response = await fetch(`${baseURL}/chat/completions`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const { choices } = await response.json()
  const answer = choices[0].message
  messages.push(answer)
  if (!answer.tool_calls?.length) break
  for (const { id, function: called } of answer.tool_calls) {
    messages.push({ role: 'tool', tool_call_id: id, content: await execute(called.name, JSON.parse(called.arguments)) })
  }
}
console.log(messages.at(-1).content)
await manager.close()
