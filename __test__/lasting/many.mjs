// Tracks many files while another process changes them, and measures how long the event loop stands still:
// node many.mjs ADDON STORE CWD FILES
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const [native, path, cwd, files] = process.argv.slice(2)
const { ContextManager } = await import(native)
const manager = await ContextManager.open({
  sessionId: 's',
  cwd,
  store: { kind: 'sqlite', path, durability: 'process' },
  filesystemId: 'test-filesystem',
})
const paths = Array.from({ length: Number(files) }, (_, n) => join(cwd, `d${n % 500}`, `f${n}`))
const ids = []
for (let n = 0; n < paths.length; n += 100) {
  const indexed = await Promise.all(paths.slice(n, n + 100).map((path) => manager.indexFile(path)))
  ids.push(...indexed.map(({ id }) => id))
}
let events = 0
manager.watch(() => (events += 1))
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
const write = `
  const { writeFileSync } = require('node:fs')
  for (let round = 1; round <= 3; round += 1)
    for (let n = 0; n < ${paths.length}; n += 1)
      writeFileSync(\`${cwd}/d\${n % 500}/f\${n}\`, \`round \${round} of \${n}\`)`
await new Promise((resolve, reject) =>
  spawn(process.execPath, ['-e', write], { stdio: 'inherit' }).once('exit', (code) =>
    code === 0 ? resolve() : reject(new Error(`the writer ended with ${code}`)),
  ),
)
const start = performance.now()
await manager.flush()
const flush = performance.now() - start
delay.disable()
let equal = 0
for (const [n, id] of ids.entries()) {
  if ((await manager.get(id)).content === readFileSync(paths[n], 'utf8')) equal += 1
}
// The histogram counts from timer to timer, which are a millisecond apart where nothing stands in the way.
const millis = (nanos) => Math.max(0, Math.round(nanos / 1e5 - 10) / 10)
console.log(JSON.stringify({ equal, events, flush, stall: millis(delay.max), usual: millis(delay.percentile(99)) }))
await manager.close()
