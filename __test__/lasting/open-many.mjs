// Opens many sessions on one store in one process, and tells what they cost: node open-many.mjs ADDON STORE CWD SESSIONS
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [native, path, cwd, sessions] = process.argv.slice(2)
const { ContextManager, Store } = await import(native)
const open = (n) => ContextManager.open({ sessionId: `s${n}`, cwd, store: { kind: 'sqlite', path, durability: 'process' }, filesystemId: 'test' })
const count = (what) => readdirSync(`/proc/self/${what}`).length
const before = { descriptors: count('fd'), threads: count('task') }
const managers = []
for (let n = 0; n < Number(sessions); n += 1) managers.push(await open(n))
// Every one of them tracks the same file, and a separate one.
const common = join(cwd, 'common')
const own = (n) => join(cwd, `own${n}`)
writeFileSync(common, 'before')
for (const [n, manager] of managers.entries()) {
  writeFileSync(own(n), 'before')
  await manager.indexFile(common)
  await manager.indexFile(own(n))
}
const store = await Store.open({ kind: 'sqlite', path, durability: 'process' })
const found = (await store.sessions()).length
const descriptors = count('fd') - before.descriptors
const threads = count('task') - before.threads
// Half of them end; the others continue.
for (let n = 0; n < managers.length; n += 2) await managers[n].close()
const refused = await managers[0].sessionSets().then(
  () => 'none',
  (error) => error.code,
)
writeFileSync(common, 'after')
let told = 0
for (let n = 1; n < managers.length; n += 2) {
  writeFileSync(own(n), `after ${n}`)
  await managers[n].flush()
  const contents = await Promise.all([common, own(n)].map(async (file) => managers[n].get((await managers[n].indexFile(file)).id)))
  if (contents[0].content === 'after' && contents[1].content === `after ${n}`) told += 1
}
for (const manager of managers) await manager.close()
await store.close()
const left = { descriptors: count('fd') - before.descriptors, files: readdirSync(join(path, '..')) }
console.log(JSON.stringify({ found, descriptors, threads, refused, told, left }))
