/** Charts as SVG, narrow enough that the text stays readable on a phone. */

/** A line of a chart. */
interface Line {
  name: string
  values: readonly number[]
}

/** Maximum width of the bar labels, and the width of one letter. */
const MAX_LABEL = 190
const LETTER = 6.2

/** Width of the drawing in its own units. */
const WIDTH = 460
const LEFT = 52
const RIGHT = 8
const TOP = 8
const BOTTOM = 24

/** More points than this can't be told apart; the largest of each group is drawn. */
const MAX_POINTS = 240

/** Escapes text for HTML. */
export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** Escapes our own sentences and figures for HTML: a number and its percent sign stay on one line. */
export function prose(text: string): string {
  return escape(text).replaceAll(/(\d) %/g, '$1\u00A0%')
}

/** Lines over the calls of a session. `format` writes a value at the axis. */
export function lineChart(title: string, lines: readonly Line[], format: (value: number) => string, marks: readonly Mark[] = []): string {
  const height = 230
  const calls = Math.max(1, ...lines.map((line) => line.values.length))
  const top = niceTop(Math.max(1e-9, ...lines.map((line) => line.values.reduce((most, value) => Math.max(most, value), 0))))
  const x = (call: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * call) / Math.max(1, calls - 1)
  const y = (value: number): number => height - BOTTOM - ((height - TOP - BOTTOM) * value) / top
  const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = y(part * top).toFixed(1)
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/><text class="axis" x="${LEFT - 4}" y="${at}" dy="4" text-anchor="end">${escape(format(part * top))}</text>`
  })
  const drawn = lines.map((line) => {
    const points = thinned(line.values).map(([call, value]) => `${x(call).toFixed(1)},${y(value).toFixed(1)}`)
    return `<polyline class="line ${line.name}" points="${points.join(' ')}"><title>${escape(line.name)}</title></polyline>`
  })
  const ticks = marks.map(({ call, text }) => {
    const at = x(call).toFixed(1)
    return `<line class="mark" x1="${at}" x2="${at}" y1="${height - BOTTOM - 7}" y2="${height - BOTTOM}"><title>${escape(text)}</title></line>`
  })
  return svg(title, height, [...grid, ...drawn, ...ticks, callAxis(calls, height)])
}

/** A mark under a chart, with a text that appears on hover. */
interface Mark {
  call: number
  text: string
}

/** A row of a timeline. */
interface Span {
  label: string
  from: number
  /** Undefined: to the end. */
  to: number | undefined
  text: string
}

/** Returns what was in sight when: a bar for each thing from its first call to its last. */
export function timeline(title: string, spans: readonly Span[], calls: number): string {
  const row = spans.length > 60 ? 4 : 9
  const height = TOP + spans.length * row + BOTTOM
  const x = (call: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * call) / Math.max(1, calls)
  const bars = spans.map((span, index) => {
    const from = x(span.from)
    const width = Math.max(1.5, x(span.to ?? calls) - from)
    return `<rect class="span ${toolClass(span.label)}" x="${from.toFixed(1)}" y="${TOP + index * row}" width="${width.toFixed(1)}" height="${row - 1}"><title>${escape(span.text)}</title></rect>`
  })
  return svg(title, height, [...bars, callAxis(calls, height)])
}

/** Pairs of bars: how much each kind of text took under two policies. */
export function bars(
  title: string,
  rows: readonly { label: string; values: readonly [number, number] }[],
  names: readonly [string, string],
  format: (value: number) => string,
): string {
  const row = 30
  const height = TOP + rows.length * row
  const most = Math.max(1e-9, ...rows.flatMap((one) => one.values))
  const widest = Math.max(0, ...rows.map((one) => one.label.length))
  const left = Math.min(MAX_LABEL, 12 + widest * LETTER)
  const room = WIDTH - left - 52
  const drawn = rows.flatMap((one, index) => {
    const y = TOP + index * row
    const bar = (value: number, at: number, name: string): string => {
      const width = Math.max(0.5, (room * value) / most)
      return `<rect class="bar ${name}" x="${left}" y="${at}" width="${width.toFixed(1)}" height="11"/><text class="axis" x="${(left + width + 4).toFixed(1)}" y="${at + 9}">${escape(format(value))}</text>`
    }
    return [
      `<text class="label" x="${left - 6}" y="${y + 15}" text-anchor="end">${escape(fitted(one.label))}<title>${escape(one.label)}</title></text>`,
      bar(one.values[0], y, names[0]),
      bar(one.values[1], y + 12, names[1]),
    ]
  })
  return svg(title, height, drawn)
}

/** A label cut to fit; the full text appears on hover. */
function fitted(label: string): string {
  const most = Math.floor((MAX_LABEL - 12) / LETTER)
  return label.length <= most ? label : `${label.slice(0, most - 1)}…`
}

/** The class that gives a tool its colour. */
export function toolClass(tool: string): string {
  return ['read', 'bash', 'edit', 'write', 'grep', 'find', 'ls'].includes(tool) ? `tool-${tool}` : 'tool-other'
}

function callAxis(calls: number, height: number): string {
  const y = height - 7
  const at = (part: number): string => String(Math.round(calls * part))
  return (
    `<text class="axis" x="${LEFT}" y="${y}">call 0</text>` +
    `<text class="axis" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${y}" text-anchor="middle">${at(0.5)}</text>` +
    `<text class="axis" x="${WIDTH - RIGHT}" y="${y}" text-anchor="end">${at(1)}</text>`
  )
}

function svg(title: string, height: number, parts: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escape(title)}">${parts.join('')}</svg>`
}

function thinned(values: readonly number[]): [call: number, value: number][] {
  const size = Math.max(1, Math.ceil(values.length / MAX_POINTS))
  const points: [number, number][] = []
  for (let start = 0; start < values.length; start += size) {
    let best = start
    for (let index = start; index < Math.min(values.length, start + size); index += 1) {
      if ((values[index] as number) > (values[best] as number)) best = index
    }
    points.push([best, values[best] as number])
  }
  const last = values.length - 1
  if (last >= 0 && points.at(-1)?.[0] !== last) points.push([last, values[last] as number])
  return points
}

/** The next round number above a value: 1, 2, 2.5 or 5 times a power of ten. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((top) => top >= value) ?? 10 * power
}
