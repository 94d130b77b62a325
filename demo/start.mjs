/**
 * `npm start -- <pi arguments>`: Pi in the terminal with the context manager, for a user with a model key. The user's own Pi
 * settings and environment apply; it works in the folder that npm was called from.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findNode, findPi, findRuntime, runtimePath } from '../pi-runtime/index.mjs'

const extension = fileURLToPath(new URL('../extensions/index.ts', import.meta.url))
if (!existsSync(extension)) fail(`${extension} is missing. Check out the whole repository.`)

const runtime = locate()
const child = spawn(runtime.node, [runtime.cli, '-e', extension, ...process.argv.slice(2)], {
  cwd: process.env.INIT_CWD ?? process.cwd(),
  env: { ...process.env, PATH: runtime.path },
  stdio: 'inherit',
})
child.on('error', (error) => fail(`${runtime.node}: ${error.message}`))
// Ctrl-C belongs to Pi, which the terminal tells by itself.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 130)))

/** Node, Pi's command line and the PATH for it; ripgrep is needed by one tool only, so its absence is not a failure. */
function locate() {
  try {
    const found = findRuntime()
    return { node: found.node, cli: found.cli, path: runtimePath(found) }
  } catch (error) {
    if (error.code !== 'RIPGREP_NOT_FOUND') fail(error.message)
    console.error(`${error.message} Pi's own grep tool will not work.`)
    return { node: findNode(), cli: findPi().cli, path: process.env.PATH }
  }
}

function fail(sentence) {
  console.error(`Pi can't start: ${sentence}`)
  process.exit(1)
}
