/** A store that takes nothing more, because its files may not grow: what it has can still be brought back. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { folder } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const DIST = new URL('../dist/index.js', import.meta.url).href

/** Kilobytes that a file may have. */
const MOST_KB = 400

/** Records outputs until that fails, and then has the first one brought back in all ways. */
const SCRIPT = `
const { ContextManager } = await import(process.argv[2])
const { broughtBack, recall } = await import(process.argv[3])
const store = { kind: 'sqlite', path: process.argv[4] }
const manager = await ContextManager.open({ sessionId: 's', cwd: '/', store, filesystemId: 'disk', watch: false })
const text = (n) => ('line ' + n + ' of many\\n').repeat(1000)
let code
for (let n = 0; code === undefined && n < 1000; n += 1) {
  const call = { id: 'call' + n, tool: 'bash', args: { command: 'make ' + n }, content: text(n), status: 'ok' }
  await manager.recordToolcall(call).catch((error) => (code = error.code))
}
const whole = await recall(manager, { id: 'call0' })
const refusal = await broughtBack(manager, 'absent').catch((error) => error)
console.log(JSON.stringify([code, whole.startsWith(text(0)), whole.includes('make 0'), await recall(manager, { id: 'call0', lines: '1-2' }), refusal.ok]))
process.exit(0)
`

test.skipIf(process.platform === 'win32')('outputs come back where nothing more can be stored', () => {
  const place = folder()
  const script = join(place, 'script.mjs')
  writeFileSync(script, SCRIPT)
  const files = [DIST, new URL('projection/recall.js', DIST).href, join(place, 'context.db')]
  const limited = `ulimit -f ${MOST_KB}; trap '' XFSZ; exec "$0" "$@"`
  const answer = execFileSync('bash', ['-c', limited, process.execPath, script, ...files], { encoding: 'utf8' })
  expect(JSON.parse(answer)).toEqual(['STORE_UNAVAILABLE', true, true, 'line 0 of many\nline 0 of many', false])
})
