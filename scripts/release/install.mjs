/**
 * The package that npm would publish of this checkout for this machine, installed into an empty folder from a registry on loopback.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packAll, packDependencies } from './pack.mjs'
import { serve } from './registry.mjs'
import { NAME, ROOT } from './targets.mjs'

const execute = promisify(execFile)

/**
 * Packs and installs. The binary of this machine must be built.
 * @param {string} folder an empty folder for all of it
 * @returns {Promise<string>} the folder in which the packages are installed
 */
export async function installHere(folder) {
  const addon = readdirSync(ROOT).find((name) => name.startsWith(`${NAME}.`) && name.endsWith('.node'))
  if (addon === undefined) throw new Error('the native part is not built: npm run build')
  const platform = addon.slice(NAME.length + 1, -'.node'.length)
  const packages = join(folder, 'packages')
  const registry = await serve([...packAll(ROOT, packages, [platform]), ...packDependencies(packages)])
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "private": true }\n')
  try {
    const args = ['install', NAME, '--registry', registry.url, '--cache', join(folder, 'cache'), '--ignore-scripts']
    const running = execute('npm', [...args, '--omit=peer', '--no-audit', '--no-fund'], { cwd: project })
    running.child.stdin?.end()
    await running
  } finally {
    await registry.close()
  }
  return project
}
