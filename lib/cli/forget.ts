/** The command `forget`. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Forgetting } from '../../index.js'
import { native } from '../native.ts'
import { STORE_HELP, storeOf } from './store.ts'
import { out, plain, UsageError } from './terminal.ts'

export const FORGET_HELP = `pi-context-manager forget [options]

Erases texts for good: from all versions, the search index, the log and the free pages of the store. Hashes, times
and names of objects stay, and the versions say when and why they were erased. The same text is never stored again,
not even by an import. Exports and backups that were made before are yours to delete.

The file is rewritten, which needs free space of twice its size. If the command is interrupted, run it again.

${STORE_HELP}
  --id ID               all versions of an object
  --path PATH           all versions of the file with this absolute path
  --session ID          a session: its prompt, its chat, and what only it has seen
  --text TEXT           this text, wherever it occurs (your shell's history keeps it, so better use
                        --text-file)
  --text-file FILE      each line of FILE that is not empty; "-" reads standard input
  --secrets             every secret that "doctor --secrets" finds
  --why WORDS           the reason that the versions give (default: "by the owner")
  --json                what was erased as JSON

Each of --id, --path, --session, --text and --text-file can be given several times.`

/** Runs the command; resolves with the exit code. */
export async function forget(args: string[]): Promise<number> {
  const many = { type: 'string', multiple: true } as const
  const { values } = parseArgs({
    args,
    options: {
      store: { type: 'string' },
      id: many,
      path: many,
      session: many,
      text: many,
      'text-file': many,
      secrets: { type: 'boolean' },
      why: { type: 'string', default: 'by the owner' },
      json: { type: 'boolean' },
    },
  })
  const texts = [...(values.text ?? []), ...(values['text-file'] ?? []).flatMap(linesOf)]
  const wanted: Forgetting[] = [
    ...(values.id ?? []).map((id) => ({ id })),
    ...(values.path ?? []).map((path) => ({ path })),
    ...(values.session ?? []).map((sessionId) => ({ sessionId })),
    ...texts.map((text) => ({ text })),
    ...(values.secrets === true ? [{ secrets: true }] : []),
  ]
  if (wanted.length === 0) throw new UsageError('name what to forget: --id, --path, --session, --text, --text-file or --secrets')
  const { options, name } = storeOf(values.store)
  const forgotten = await native.forgetStore(options, wanted, values.why)
  if (values.json === true) out(JSON.stringify(forgotten))
  else out(plain(`${name}: erased ${forgotten.texts} texts; ${forgotten.versions} versions now say so`))
  return 0
}

function linesOf(file: string): string[] {
  // Editors on Windows begin a file with a byte order mark, which is no part of the first line.
  const text = read(file).replace(/^\ufeff/, '')
  return text.split(/\r?\n/).filter((line) => line !== '')
}

function read(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${(error as Error).message.replace(/^\w+: /, '')}`)
  }
}
