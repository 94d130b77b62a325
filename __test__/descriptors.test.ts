/** A process without free descriptors gets an error that says so, and works again once some are free. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { sqlite } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const NATIVE = new URL('../dist/index.js', import.meta.url).href

/** Opens a store with only this many descriptors left, and then with all. */
const SCRIPT = `
const { openSync, closeSync } = require('node:fs')
const [native, path, left] = process.argv.slice(1)
import(native).then(async ({ Store }) => {
  const open = () => Store.open({ kind: 'sqlite', path })
  if (left !== 'new') await (await open()).close()
  const taken = []
  try { for (;;) taken.push(openSync('/dev/null')) } catch {}
  for (let n = 0; n < Number(left === 'new' ? 0 : left); n += 1) closeSync(taken.pop())
  const failed = await open().then(async (store) => { await store.sessions(); await store.close(); return 'none' }).catch(({ code, message }) => code + ' ' + message)
  taken.forEach((one) => closeSync(one))
  const store = await open()
  await store.sessions()
  await store.close()
  console.log(failed)
})`

test.runIf(process.platform === 'linux').each(['new', '0', '1', '2', '3'])('with %s left', async (left) => {
  const run = ['-c', 'ulimit -n 80; exec "$0" -e "$1" "$2" "$3" "$4"', process.execPath, SCRIPT, NATIVE, sqlite().path, left]
  const { stdout, stderr } = await promisify(execFile)('sh', run)
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^STORE_UNAVAILABLE .*no file descriptors left; close files.*ulimit -n/)
  expect(stdout).not.toMatch(/permission|os error/)
})
