// A host that sends what it has: node host.mjs ADDON STORE CWD SESSION. Each line of its input has the conversation, its
// answer what goes to the model. It keeps nothing, so that it can be killed at any time.
import { createInterface } from 'node:readline'

const [native, path, cwd, sessionId] = process.argv.slice(2)
const { ContextManager } = await import(native)
const store = { kind: 'sqlite', path, durability: 'process' }
const manager = await ContextManager.open({ sessionId, cwd, store, filesystemId: 'test-filesystem' })
for await (const line of createInterface({ input: process.stdin })) {
  await manager.flush()
  const sent = await manager.transformContext(JSON.parse(line))
  process.stdout.write(`${JSON.stringify(sent)}\n`)
}
