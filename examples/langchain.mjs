// LangChain: node examples/langchain.mjs "What does package.json say?"
// Needs: npm install pi-context-manager langchain @langchain/core @langchain/openai, and OPENAI_BASE_URL, OPENAI_API_KEY, MODEL.
import { ChatOpenAICompletions } from '@langchain/openai'
import { createAgent, tool } from 'langchain'
import { readFile } from 'node:fs/promises'
import { contextMiddleware } from 'pi-context-manager/langchain'

const { OPENAI_BASE_URL: baseURL = 'https://api.openai.com/v1', OPENAI_API_KEY: apiKey = '', MODEL = 'gpt-5' } = process.env

// The middleware declares its own tool.
const middleware = contextMiddleware({
  sessionId: `langchain-${process.pid}`,
  model: { name: MODEL, contextWindow: 400_000, input: 1.25, cacheRead: 0.125, cacheWrite: 1.25 },
})

const read = tool(({ path }) => readFile(path, 'utf8'), {
  name: 'read',
  description: 'Reads a file',
  schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
})

const agent = createAgent({
  model: new ChatOpenAICompletions({ model: MODEL, apiKey, configuration: { baseURL } }),
  tools: [read],
  middleware: [middleware],
})
const messages = [{ role: 'user', content: process.argv[2] ?? 'What does package.json say?' }]
for await (const [message] of await agent.stream({ messages }, { streamMode: 'messages' })) {
  if (message.getType() === 'ai') process.stdout.write(message.text)
}
console.log()
await middleware.context.close()
