/** The command `forget`. */
import { readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Forgetting, Forgotten } from '../../index.js'
import { forgetForms } from '../gateway/index.ts'
import { secretLine } from './doctor.ts'
import { DONE, exitHelp, NONE } from './exit.ts'
import { objectOrSessionOf, sessionOf } from './objects.ts'
import { asStored, inStore } from '../native/index.ts'
import { ownedStoreOf, STORE_HELP } from './store.ts'
import type { NamedStore } from './store.ts'
import { tellUnsent } from './unsent.ts'
import { counted, NotFound, out, plain, reasonOf, UsageError } from '../ui/index.ts'

export const FORGET_HELP = `pi-context-manager forget [options]

Erases texts for good: from all versions, the search index, the log and the free
pages of the store. Hashes, times and names of objects stay, and the versions
say when and why they were erased. The same text is never stored again, not even
by an import. Exports and backups that were made before are yours to delete.

A file is rewritten, which needs free space of three times its size. On XTDB,
the objects are evicted and what stays is put back; this machine's journal is
erased, too. If the command is interrupted, run it again.

${STORE_HELP}
  --id ID               all versions of an object; a short name (673a446c) or a
                        beginning will do, of a short name at least four digits;
                        or a session, as --session
  --path PATH           all versions of a file
  --session ID          a session: its prompt, its chat, and what only it has
                        seen
  --text TEXT           this text, wherever it occurs (your shell's history
                        keeps it, so better use --text-file)
  --text-file FILE      each line of FILE that is not empty; "-" reads standard
                        input
  --secrets             every secret that "doctor --secrets" finds; says where
                        they were
  --dry-run             only say what would be erased, and how many versions
                        have the same text; a database file only
  --why WORDS           the reason that the versions give (default: "by the
                        owner")
  --json                what was erased as JSON

Each of --id, --path, --session, --text and --text-file can be given several
times.

${exitHelp('no text matched, or the object or session does not exist')}`

const MANY = { type: 'string', multiple: true } as const

export const FORGET_OPTIONS = {
  store: { type: 'string' },
  id: MANY,
  path: MANY,
  session: MANY,
  text: MANY,
  'text-file': MANY,
  secrets: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  why: { type: 'string', default: 'by the owner' },
  json: { type: 'boolean' },
} as const

/** Runs the command; resolves with the exit code. */
export async function forget(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: FORGET_OPTIONS })
  const texts = [...(values.text ?? []), ...(values['text-file'] ?? []).flatMap(linesOf)]
  const { id: ids = [], path: paths = [], session: sessions = [], secrets = false } = values
  if (ids.length + paths.length + sessions.length + texts.length === 0 && !secrets)
    throw new UsageError('name what to forget: --id, --path, --session, --text, --text-file or --secrets')
  const store = ownedStoreOf(values.store)
  const wanted: Forgetting[] = [
    ...(await each(ids, (id) => objectOrSessionOf(store, id))),
    ...(await each(paths, (path) => fileOf(store, path))).map((path) => ({ path })),
    ...(await each(sessions, (session) => sessionOf(store, session))).map((sessionId) => ({ sessionId })),
    ...texts.map((text) => ({ text })),
    ...(secrets ? [{ secrets: true }] : []),
  ]
  const places = secrets ? await inStore(store.options, (opened) => opened.findSecrets()) : []
  const isDry = values['dry-run'] === true
  const forgotten = await (isDry ? tried(store, wanted, values.why) : inStore(store.options, (opened) => opened.forget(wanted, values.why), tellUnsent))
  const { texts: erased, versions } = forgotten
  // A form has excerpts of what our lines stand for. They are sealed; erased is better.
  if (!isDry) forgetForms(store.options)
  if (values.json === true) out(JSON.stringify(secrets ? { ...forgotten, secrets: places } : forgotten))
  else if (versions === 0) out(plain(`${store.name}: nothing matched, so nothing ${isDry ? 'would be' : 'was'} erased`))
  else {
    for (const place of places) out(secretLine(place))
    if (isDry)
      out(
        plain(
          `${store.name}: would erase ${counted(erased, 'text')}; ${counted(versions, 'version')} ${versions === 1 ? 'has it and would say so' : `${erased === 1 ? 'have it' : 'have them'} and would say so`}`,
        ),
      )
    else out(plain(`${store.name}: erased ${counted(erased, 'text')}; ${counted(versions, 'version')} now ${versions === 1 ? 'says' : 'say'} so`))
  }
  return versions === 0 ? NONE : DONE
}

/** Counts what would be erased. */
function tried({ options, name }: NamedStore, wanted: Forgetting[], why: string): Promise<Forgotten> {
  if (options.kind !== 'sqlite') throw new UsageError(`--dry-run works on a database file, and ${name} is none`)
  return inStore(options, (opened) => opened.forget(wanted, why, { dryRun: true }))
}

async function each<T>(names: readonly string[], look: (name: string) => Promise<T>): Promise<T[]> {
  const found: T[] = []
  for (const name of names) found.push(await look(name))
  return found
}

async function fileOf({ options, name }: NamedStore, given: string): Promise<string> {
  const path = asStored(realPath(given))
  if ((await inStore(options, (opened) => opened.find(path))).length === 0) throw new NotFound(`${name} has no file ${path}; "search" shows paths`)
  return path
}

/** The path under which a file is recorded: absolute and without links, as far as the folders still exist. */
function realPath(path: string): string {
  const full = resolve(path)
  try {
    return realpathSync(full)
  } catch {
    const folder = dirname(full)
    return folder === full ? full : join(realPath(folder), basename(full))
  }
}

function linesOf(file: string): string[] {
  // Editors on Windows begin a file with a byte order mark, which does not belong to the first line.
  const text = read(file).replace(/^\ufeff/, '')
  return text.split(/\r?\n/).filter((line) => line !== '')
}

function read(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${reasonOf(error)}`)
  }
}
