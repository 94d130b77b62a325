/** `npm run demo`: finds a Node that Pi runs on, and runs the demo with it. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findNode } from '../pi-runtime/index.mjs'

let node
try {
  node = findNode()
} catch (error) {
  console.error(`The demo can't start: ${error.message}`)
  process.exit(1)
}
const main = fileURLToPath(new URL('main.ts', import.meta.url))
const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning']
const child = spawn(node, [...flags, main, ...process.argv.slice(2)], { stdio: 'inherit' })
child.on('error', (error) => {
  console.error(`The demo can't start: ${node}: ${error.message}`)
  process.exit(1)
})
// A terminal sends Ctrl-C to both; the child then tidies up and this process reports its end.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 1)))
