// pi-agent-core: node examples/pi-agent-core.mjs "What does package.json say?"
// Needs: npm install pi-context-manager @earendil-works/pi-agent-core @earendil-works/pi-ai typebox, and OPENAI_BASE_URL, OPENAI_API_KEY, MODEL.
import { Agent } from '@earendil-works/pi-agent-core'
import { streamSimple } from '@earendil-works/pi-ai/api/openai-completions'
import { readFile } from 'node:fs/promises'
import { contextFor } from 'pi-context-manager/pi-agent-core'
import { Type } from 'typebox'

const { OPENAI_BASE_URL: baseUrl = 'https://api.openai.com/v1', OPENAI_API_KEY: key = '', MODEL: id = 'gpt-5' } = process.env
const cost = { input: 1.25, output: 10, cacheRead: 0.125, cacheWrite: 1.25 }
const model = {
  id,
  name: id,
  api: 'openai-completions',
  provider: 'openai',
  baseUrl,
  reasoning: false,
  input: ['text'],
  cost,
  contextWindow: 400_000,
  maxTokens: 8_000,
}

const context = contextFor({ sessionId: `agent-${process.pid}`, model: { name: id, contextWindow: 400_000, ...cost } })

const read = {
  name: 'read',
  label: 'read',
  description: 'Reads a file',
  parameters: Type.Object({ path: Type.String() }),
  execute: async (_id, { path }) => ({ content: [{ type: 'text', text: await readFile(path, 'utf8') }], details: undefined }),
}

const agent = new Agent({
  initialState: { systemPrompt: 'You help.', model, tools: [read, ...context.tools] },
  transformContext: context.transformContext,
  getApiKey: () => key,
  streamFn: streamSimple,
})
await agent.prompt(process.argv[2] ?? 'What does package.json say?')
console.log(
  agent.state.messages
    .at(-1)
    .content.map((block) => block.text ?? '')
    .join(''),
)
await context.close()
