// The OpenAI Agents SDK: node examples/openai-agents.mjs "What does package.json say?"
// Needs: npm install pi-context-manager @openai/agents, and OPENAI_API_KEY (and OPENAI_BASE_URL, MODEL for another provider).
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents'
import { readFile } from 'node:fs/promises'
import { OpenAI } from 'openai'
import { contextFor } from 'pi-context-manager/openai-agents'

const { MODEL = 'gpt-5' } = process.env
setTracingDisabled(true)

const context = contextFor({
  sessionId: `agents-${process.pid}`,
  model: { name: MODEL, contextWindow: 400_000, input: 1.25, cacheRead: 0.125, cacheWrite: 1.25 },
})

const read = tool({
  name: 'read',
  description: 'Reads a file',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'], additionalProperties: false },
  strict: true,
  execute: ({ path }) => readFile(path, 'utf8'),
})

const agent = new Agent({
  name: 'reader',
  instructions: 'You help.',
  model: new OpenAIChatCompletionsModel(new OpenAI(), MODEL),
  tools: [read, ...context.tools],
})
const question = process.argv[2] ?? 'What does package.json say?'
const result = await run(agent, question, { stream: true, maxTurns: 50, callModelInputFilter: context.callModelInputFilter })
await result.completed
console.log(result.finalOutput)
await context.close()
