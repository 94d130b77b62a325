/**
 * A host in its own process, which the test kills. It gets its prompts over IPC, asks before each result of a tool, and keeps its
 * conversation in a file: at each model call, or at the end of each turn only.
 */
import type { BaseMessage, StoredMessage } from '@langchain/core/messages'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { drivers } from './drivers.ts'
import { output } from './script.ts'

/** The options with which the process is started, as JSON. */
export interface ChildOptions {
  host: string
  url: string
  cwd: string
  store: string
  filesystemId: string
  /** The file of the conversation. */
  file: string
  /** The conversation is kept at each model call, not only at the end of a turn. */
  isEachCall: boolean
}

/** Its messages: it is ready, a tool was called, a turn is over, or something went wrong. */
export type ChildMessage = { ready: true } | { tool: string } | { done: true } | { warning: string } | { failed: string }

const { host, url, cwd, store, filesystemId, file, isEachCall } = JSON.parse(process.argv[2] as string) as ChildOptions
const say = (message: ChildMessage): void => void process.send?.(message)
/** Calls of the tool that wait, in their order. */
const waiting: (() => void)[] = []

const driver = await drivers[host]!({
  url,
  show: async (name) => {
    const asked = new Promise<void>((resolve) => waiting.push(resolve))
    say({ tool: name })
    await asked
    return output(name)
  },
  context: {
    sessionId: 's',
    cwd,
    store: { kind: 'sqlite', path: store, durability: 'process' },
    filesystemId,
    watch: false,
    model: { name: 'scripted', contextWindow: 200_000, input: 1, cacheRead: 0.1, cacheWrite: 1.25 },
    onWarning: (warning) => say({ warning }),
  },
})

/** LangChain's messages are instances of classes, which its own functions write and read. */
const langchain = host === 'langchain' ? await import('@langchain/core/messages') : undefined

if (existsSync(file)) {
  const kept = JSON.parse(readFileSync(file, 'utf8')) as unknown[]
  driver.history.splice(0, driver.history.length, ...(langchain === undefined ? kept : langchain.mapStoredMessagesToChatMessages(kept as StoredMessage[])))
}

/** Keeps a conversation as a host would: a crash leaves the one before or this one. */
function save(messages: readonly unknown[]): void {
  const all = langchain === undefined ? messages : langchain.mapChatMessagesToStoredMessages(messages as BaseMessage[])
  writeFileSync(`${file}.new`, JSON.stringify(all))
  renameSync(`${file}.new`, file)
}

const { context } = driver
if (context !== undefined && isEachCall) {
  const transform = context.transform.bind(context)
  context.transform = (messages, canRecall) => {
    save(messages)
    return transform(messages, canRecall)
  }
}

process.on('message', (message: { prompt: string } | 'go') => {
  if (message === 'go') return waiting.shift()?.()
  driver.prompt(message.prompt).then(
    () => {
      save(driver.history)
      say({ done: true })
    },
    (error: unknown) => say({ failed: String(error) }),
  )
})
say({ ready: true })
