// The AI SDK: node examples/ai-sdk.mjs "What does package.json say?"
// Needs: npm install pi-context-manager ai @ai-sdk/openai-compatible, and OPENAI_BASE_URL, OPENAI_API_KEY, MODEL.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { isStepCount, jsonSchema, streamText, tool } from 'ai'
import { readFile } from 'node:fs/promises'
import { contextFor } from 'pi-context-manager/ai-sdk'

const { OPENAI_BASE_URL: baseURL = 'https://api.openai.com/v1', OPENAI_API_KEY: apiKey = '', MODEL = 'gpt-5' } = process.env
const provider = createOpenAICompatible({ name: 'openai', baseURL, apiKey })

// Each conversation has its own context. Without `store`, it is saved in the user's data directory.
const context = contextFor({
  sessionId: `ai-sdk-${process.pid}`,
  model: { name: MODEL, contextWindow: 400_000, input: 1.25, cacheRead: 0.125, cacheWrite: 1.25 },
})

const result = streamText({
  model: provider(MODEL),
  messages: [{ role: 'user', content: process.argv[2] ?? 'What does package.json say?' }],
  tools: {
    read: tool({
      description: 'Reads a file',
      inputSchema: jsonSchema({ type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }),
      execute: ({ path }) => readFile(path, 'utf8'),
    }),
    ...context.tools, // what collapses can be brought back
  },
  prepareStep: context.prepareStep, // the model gets the projection of the conversation
  stopWhen: isStepCount(50),
})
for await (const text of result.textStream) process.stdout.write(text)
console.log()
await context.close()
