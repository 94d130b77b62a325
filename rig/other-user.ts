/**
 * Programs run as a user who may not do everything, for tests of files that may not be read or written: the administrator may read
 * all of them. Where tests run as another user, that one is it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, lchownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { onCleanUp } from './cleanup.ts'

/** A user and group without rights; undefined where the tests do not run as the administrator. */
const OTHER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** Why no program can be run as such a user here; undefined if one can. `file`: one that it has to read. */
export function notOther(file: string): string | undefined {
  if (process.platform === 'win32') return 'Windows has other rights'
  if (OTHER === undefined) return undefined
  const { status, error, stderr } = spawnSync(process.execPath, ['-e', 'require("fs").readFileSync(process.argv[1])', file], { ...OTHER, encoding: 'utf8' })
  return status === 0 ? undefined : `the user ${OTHER.uid} can't run node on the checkout: ${error?.message ?? stderr}`
}

/** Gives a folder, and all in it, to the user who runs the programs. */
export function giveToOther(path: string): void {
  if (OTHER === undefined) return
  lchownSync(path, OTHER.uid, OTHER.gid)
  for (const entry of readdirSync(path, { withFileTypes: true, recursive: true })) lchownSync(join(entry.parentPath, entry.name), OTHER.uid, OTHER.gid)
}

/** Takes all rights to a file or folder from that user until the test ends. */
export function lock(path: string): void {
  if (OTHER !== undefined) lchownSync(path, 0, 0)
  chmodSync(path, 0)
  onCleanUp(() => chmodSync(path, 0o700))
}

/** A program's exit code and output. */
export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs a program as that user, in a folder, and waits for its end. */
export function runAsOther([file, args]: readonly [string, readonly string[]], cwd: string, env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...OTHER, cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}
