/** The demo's table: what the two runs sent to the model, measured from the recorded requests. */
import { isReference } from '../lib/lines/index.ts'
import { estimateTokens, total, USUAL_PRICES } from '../rig/meter.ts'
import type { Total } from '../rig/meter.ts'
import type { ModelRequest } from '../rig/exchange.ts'
import { columns as aligned } from '../lib/ui/index.ts'

/** One run's column. */
interface Column {
  name: string
  requests: readonly ModelRequest[]
}

/** The table as lines. With two columns the last one tells the second as a share of the first. */
export function table(columns: readonly Column[]): string[] {
  const sums = columns.map((column) => total(column.requests, USUAL_PRICES))
  const [first, second] = sums
  const { read, write } = USUAL_PRICES
  const ratio = (pick: (sum: Total) => number): string =>
    first === undefined || second === undefined ? '' : `${Math.round((100 * pick(second)) / pick(first))} %`
  const row = (name: string, cell: (sum: Total) => string, last = ''): string[] => [name, ...sums.map(cell), last]
  const rows = [
    ['', ...columns.map((column) => column.name), columns.length > 1 ? 'of plain Pi' : ''],
    row('model calls', (sum) => whole(sum.calls)),
    row(
      'tokens sent, all calls',
      (sum) => whole(sum.prompt),
      ratio((sum) => sum.prompt),
    ),
    row(
      'tokens sent, largest call',
      (sum) => whole(sum.peak),
      ratio((sum) => sum.peak),
    ),
    row('of them read from the cache', (sum) => `${(100 * sum.cachedShare).toFixed(1)} %`),
    row(
      'cost of what was sent *',
      (sum) => whole(sum.cost),
      ratio((sum) => sum.cost),
    ),
  ]
  const [head, ...body] = aligned(rows, { gap: '   ' })
  const rule = '-'.repeat(Math.max(...[head ?? '', ...body].map((line) => line.length)))
  return [
    head ?? '',
    rule,
    ...body,
    rule,
    `* in input tokens, where one read from the cache counts ${read.toFixed(2)} and any other ${write.toFixed(2)}`,
    '  A token counts as four characters; cached is the prefix that a request shares with an earlier one.',
  ]
}

/** Returns the results in the model's last call: in full, and as references. */
export function inSight(request: ModelRequest): { full: number; references: number; fullTokens: number } {
  const texts = request.messages.flatMap((message) => message.results.map((result) => result.text))
  const full = texts.filter((text) => !isReference(text))
  return {
    full: full.length,
    references: texts.length - full.length,
    fullTokens: full.reduce((sum, text) => sum + estimateTokens(text), 0),
  }
}

/** A whole number with separators, as `1,234,567`. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
