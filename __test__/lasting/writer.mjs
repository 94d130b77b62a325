// Writes through the class until it is killed, and says what was acknowledged: node writer.mjs ADDON STORE CWD FIRST
import { writeSync } from 'node:fs'

const [native, path, cwd, first] = process.argv.slice(2)
const { ContextManager } = await import(native)
const manager = await ContextManager.open({
  sessionId: 's',
  cwd,
  store: { kind: 'sqlite', path, durability: 'power' },
  filesystemId: 'test-filesystem',
})
for (let n = Number(first); ; n += 1) {
  // A file, a call and the sets that hold it: one turn's worth, which must be there as a whole or not at all.
  await manager.appendTurn({ role: 'user', content: `question ${n}` })
  await manager.indexFile('file', `version ${n}\n${'a line of text\n'.repeat((n % 7) * 50)}`)
  const id = await manager.recordToolcall({ id: `call_${n}`, tool: 't', args: { n }, content: `${n}`, status: 'ok' })
  if (id !== `call_${n}`) throw new Error(`call_${n} became ${id}`)
  writeSync(1, `${n}\n`)
}
