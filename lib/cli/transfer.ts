/** The commands `export` and `import`. */
import { createReadStream, existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { DONE, exitHelp } from './exit.ts'
import { sessionOf } from './objects.ts'
import { needReader } from './signals.ts'
import { inStore, Store } from '../native/index.ts'
import { reading, STORE_HELP, storeOf } from './store.ts'
import { needReplaceable, out, plain, UsageError } from '../ui/index.ts'
import { whileUnfinished, withFolder } from '../core/index.ts'

export const EXPORT_HELP = `pi-context-manager export [options] FILE

Writes a store, or one of its sessions, to FILE as JSON Lines: every version of
every object, with hashes and times. The file is readable only by its owner and
ends with its own checksum. The store is not changed and may be in use. FILE is
a regular file, or "-" for standard output.

${STORE_HELP}
  --session ID          only this session and everything it has encountered; a
                        beginning that no other has will do
  --force               replace FILE if it is an export
  --json                what was written as JSON (not with "-")

${exitHelp('the session does not exist')}`

export const IMPORT_HELP = `pi-context-manager import [options] FILE

Reads a file written by "export" into a store. Before anything is written, the
whole file is checked against its checksum, the rules for stored documents, and
the contents of the store. What the store already has is left alone, so an
interrupted import can be repeated.

${STORE_HELP}
                        A missing database file is created.
  --json                what was written as JSON

${exitHelp(undefined, 'all of it is in the store; after a failure, nothing of it is')}`

/** The name for standard output. */
const STANDARD_OUTPUT = '-'

export const EXPORT_OPTIONS = {
  store: { type: 'string' },
  session: { type: 'string' },
  force: { type: 'boolean' },
  json: { type: 'boolean' },
} as const
export const IMPORT_OPTIONS = { store: { type: 'string' }, json: { type: 'boolean' } } as const

/** Runs `export`; resolves with the exit code. */
export async function exportCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: EXPORT_OPTIONS, allowPositionals: true })
  const file = only(positionals, 'export needs the name of one file to write, or "-" for standard output')
  if (file !== STANDARD_OUTPUT && values.force === true) needReplaceable(file, 'an export')
  return reading(values.store, async (store) => {
    const session = values.session === undefined ? undefined : await sessionOf(store, values.session)
    if (file === STANDARD_OUTPUT) {
      // A truncated export is useless.
      needReader()
      await withFolder(async (folder) => {
        const whole = join(folder, 'export.jsonl')
        await inStore(store.options, (opened) => opened.export(whole, session))
        await pipeline(createReadStream(whole), process.stdout, { end: false })
      })
      return DONE
    }
    if (existsSync(file) && values.force !== true) throw new UsageError(`${file} already exists; use --force to replace it`)
    const folder = dirname(resolve(file))
    if (!existsSync(folder)) throw new UsageError(`${file} can't be written: the folder ${folder} does not exist`)
    const written = await whileUnfinished(file, () => inStore(store.options, (opened) => opened.export(file, session)))
    const { objects, versions } = written
    out(values.json === true ? JSON.stringify({ file, ...written }) : plain(`${file}: ${objects} objects in ${versions} versions of ${store.name}`))
    return DONE
  })
}

/** Runs `import`; resolves with the exit code. */
export async function importCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: IMPORT_OPTIONS, allowPositionals: true })
  const file = only(positionals, 'import needs the name of one file to read')
  if (!existsSync(file)) throw new UsageError(`${file} does not exist`)
  const { options, name } = storeOf(values.store, true)
  // A file that can't be imported leaves no empty store behind.
  if (options.kind === 'sqlite' && !existsSync(options.path)) await Store.checkExport(file)
  const imported = await inStore(options, (store) => store.import(file))
  const { objects, versions, written } = imported
  out(values.json === true ? JSON.stringify(imported) : plain(`${name}: ${written} of ${versions} versions were new (${objects} objects)`))
  return DONE
}

function only(positionals: readonly string[], sentence: string): string {
  const [file] = positionals
  if (file === undefined || positionals.length > 1)
    throw new UsageError(`${sentence}; ${positionals.length === 0 ? 'none was' : `${positionals.length} were`} given`)
  return file === STANDARD_OUTPUT ? file : resolve(file)
}
