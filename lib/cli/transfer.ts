/** The commands `export` and `import`. */
import { createReadStream, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { native } from '../native.ts'
import { STORE_HELP, storeOf, withFolder } from './store.ts'
import { out, plain, UsageError } from './terminal.ts'

export const EXPORT_HELP = `pi-context-manager export [options] FILE

Writes a store, or one of its sessions, to FILE as JSON Lines: every version of every object, with hashes
and times. The file is readable only by its owner and ends with its own checksum. The store is not changed
and may be in use. FILE is a regular file, or "-" for standard output.

${STORE_HELP}
  --session ID          only this session and everything it has encountered
  --force               replace FILE if it exists`

export const IMPORT_HELP = `pi-context-manager import [options] FILE

Reads a file written by "export" into a store. Before anything is written, the whole file is checked
against its checksum, the rules for stored documents, and the contents of the store. What the store already
has is left alone, so an interrupted import can be repeated.

${STORE_HELP}
                        A missing database file is created.`

/** The name for standard output. */
const STANDARD_OUTPUT = '-'

/** Runs `export`; resolves with the exit code. */
export async function exportCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    options: { store: { type: 'string' }, session: { type: 'string' }, force: { type: 'boolean' } },
    allowPositionals: true,
  })
  const file = only(positionals, 'export needs exactly one file to write')
  const { options, name } = storeOf(values.store)
  if (file === STANDARD_OUTPUT) {
    await withFolder(async (folder) => {
      const whole = join(folder, 'export.jsonl')
      await native.exportStore(options, whole, values.session)
      await pipeline(createReadStream(whole), process.stdout, { end: false })
    })
    return 0
  }
  if (existsSync(file) && values.force !== true) throw new UsageError(`${file} already exists; use --force to replace it`)
  const { objects, versions } = await native.exportStore(options, file, values.session)
  out(plain(`${file}: ${objects} objects in ${versions} versions of ${name}`))
  return 0
}

/** Runs `import`; resolves with the exit code. */
export async function importCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: { store: { type: 'string' } }, allowPositionals: true })
  const file = only(positionals, 'import needs exactly one file to read')
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
