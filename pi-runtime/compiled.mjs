/** Pi as one binary, as its makers build it: Bun's compiler on Pi's own entry. Kept, because it takes a while. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bun, KEPT } from './packages.mjs'

/**
 * The binary that is made of a Pi package.
 * @param {string} root the package's folder
 * @param {string} version its version
 * @returns {string} absolute path
 * @throws {Error} with what Bun says, where it can't be compiled
 */
export function compiledPi(root, version) {
  throw new Error('not yet')
}
