/** The command `log`. */
import { parseArgs } from 'node:util'
import type { Version } from '../../index.js'
import { bounded, changedLines, countOf, plain, shortName, shown, when } from '../ui/index.ts'
import { exitHelp } from './exit.ts'
import { only, textOf, whyOf } from './look.ts'
import { ownerLine, ownerOf, shownOf } from './objects.ts'
import { paged } from './pager.ts'
import { inStore } from '../native/index.ts'
import { reading, STORE_HELP } from './store.ts'

export const LOG_HELP = `pi-context-manager log [options] ID|PATH|SESSION

Lists the versions of an object, newest first, each with what it changed, like
"git log -p", after its agent and its session. A long change or line shows only
its beginning, and thousands of changed lines are not compared one by one;
"show ID@TX" prints all of a version. ID is an object's ID or its short name
(673a446c), or a beginning of either that no other object has (four digits of
a short name at least). SESSION is its conversation.

${STORE_HELP}
  --limit N             at most N versions
  --no-patch            without the differences
  --json                the versions as JSON, one in a line

${exitHelp('the object does not exist')}`

export const LOG_OPTIONS = {
  store: { type: 'string' },
  json: { type: 'boolean' },
  limit: { type: 'string' },
  'no-patch': { type: 'boolean' },
} as const

/** Runs `log`; resolves with the exit code. */
export async function log(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: LOG_OPTIONS, allowPositionals: true })
  const limit = countOf('limit', values.limit, Number.MAX_SAFE_INTEGER, 1)
  const given = only(positionals, 'log')
  return reading(values.store, async (store) => {
    const id = await shownOf(store, given)
    const versions = await inStore(store.options, (opened) => opened.history(id))
    const first = Math.max(0, versions.length - limit)
    const owner = await ownerOf(store.options, id)
    await paged(async (write, paint) => {
      if (values.json !== true && owner !== undefined) await write(paint.dim(ownerLine(owner)))
      for (let index = versions.length - 1; index >= first; index -= 1) {
        const version = versions[index] as Version
        if (values.json === true) {
          await write(shown(JSON.stringify({ ...version, ...owner })))
          continue
        }
        await write(`${paint.id(`${shortName(id)}@${version.txId}`)}  ${when(version.validTime)}  ${sizeOf(version)}`)
        if (values['no-patch'] === true) continue
        // A version of which only the hash was recorded is not an empty file.
        const before = versions.slice(0, index).findLast((one) => !isHashOnly(one))
        for (const line of isHashOnly(version) ? [] : bounded(changed(before, version))) {
          const colour = line.startsWith('+') ? paint.added : line.startsWith('-') ? paint.removed : paint.dim
          await write(colour(line))
        }
        await write('')
      }
    })
    return 0
  })
}

function isHashOnly({ document, erased }: Version): boolean {
  return document.type === 'file' && erased === undefined && typeof document.content !== 'string' && document['source_hash'] !== null
}

function sizeOf(version: Version): string {
  const text = version.document.type === 'chat' ? textOf(version) : version.document.content
  if (version.erased !== undefined) return plain(`erased ${when(version.erased.at)}, ${version.erased.why}`)
  return typeof text === 'string' ? `${Buffer.byteLength(text)} bytes` : `no text${plain(whyOf(version))}`
}

function changed(before: Version | undefined, after: Version): Iterable<string> {
  const now = textOf(after) ?? ''
  return before === undefined ? added(now) : changedLines(textOf(before) ?? '', now)
}

/** The lines of a text, as added ones. */
function* added(text: string): Generator<string> {
  if (text === '') return
  const end = text.endsWith('\n') ? text.length - 1 : text.length
  for (let from = 0; from <= end;) {
    const at = text.indexOf('\n', from)
    const to = at < 0 ? end : at
    yield `+${text.slice(from, to)}`
    from = to + 1
  }
}
