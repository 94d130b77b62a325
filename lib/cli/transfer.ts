/** The commands `export` and `import`. */
import { createReadStream, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { native } from '../native.ts'
import { STORE_HELP, storeOf, withFolder } from './store.ts'
import { out, plain, UsageError } from './terminal.ts'

export const EXPORT_HELP = `pi-context-manager export [options] FILE

Writes a store, or one session of it, to FILE as JSON Lines: every version of every object, with its
hashes and times. The file is readable by its owner only and ends with its own checksum. The store stays
as it is, and may be in use. FILE is a regular file, or "-" for standard output.

${STORE_HELP}
  --session ID          only this session and what it has encountered
  --force               replace FILE if it exists`

export const IMPORT_HELP = `pi-context-manager import [options] FILE

Takes what "export" has written into a store. The file is checked as a whole before anything is written,
against its checksum, the rules of what a store holds, and the store; what the store has already is left alone, so an import that was interrupted can be repeated.

${STORE_HELP}
                        A database file that does not exist is made.`

/** The name for standard output. */
const STANDARD_OUTPUT = '-'

/** Runs `export`; resolves with the exit code. */
export async function exportCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { store: { type: 'string' }, session: { type: 'string' }, force: { type: 'boolean' } },
    allowPositionals: true,
  })
  const file = only(positionals, 'export needs the name of one file to write')
  const { options, name } = storeOf(values.store)
  if (file === STANDARD_OUTPUT) {
    await withFolder(async (folder) => {
      const whole = join(folder, 'export.jsonl')
      await native.exportStore(options, whole, values.session)
      await pipeline(createReadStream(whole), process.stdout, { end: false })
    })
    return 0
  }
  if (existsSync(file) && values.force !== true) throw new UsageError(`${file} exists; --force replaces it`)
  const { objects, versions } = await native.exportStore(options, file, values.session)
  out(plain(`${file}: ${objects} objects in ${versions} versions of ${name}`))
  return 0
}

/** Runs `import`; resolves with the exit code. */
export async function importCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: { store: { type: 'string' } }, allowPositionals: true })
  const file = only(positionals, 'import needs the name of one file to read')
  if (!existsSync(file)) throw new UsageError(`there is no file ${file}`)
  const { options, name } = storeOf(values.store, true)
  const { objects, versions, written } = await native.importStore(options, file)
  out(plain(`${name}: ${written} of ${versions} versions were new (${objects} objects)`))
  return 0
}

function only(positionals: readonly string[], sentence: string): string {
  const [file] = positionals
  if (file === undefined || positionals.length > 1) throw new UsageError(sentence)
  return file === STANDARD_OUTPUT ? file : resolve(file)
}
