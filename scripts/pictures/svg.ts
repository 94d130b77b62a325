/** A terminal's screen, with its escape sequences for colours, as an SVG. */

const CELL = 8.4
const LINE = 18
const FONT = 14
const MARGIN = 14
const COLORS = { background: '#18181e', text: '#d4d4d4' }

/** The first sixteen colours of a terminal. */
const BASIC = [
  '#18181e', '#cc6666', '#b5bd68', '#f0c674', '#81a2be', '#b294bb', '#8abeb7', '#c5c8c6',
  '#666666', '#d54e53', '#b9ca4a', '#e7c547', '#7aa6da', '#c397d8', '#70c0b1', '#eaeaea',
]

interface Style {
  color: string
  background: string | undefined
  bold: boolean
  dim: boolean
  inverse: boolean
}

/** Draws a screen of so many columns. */
export function drawTerminal(screen: string, columns: number): string {
  const lines = screen.split('\n')
  const width = Math.ceil(columns * CELL + 2 * MARGIN)
  const height = lines.length * LINE + 2 * MARGIN
  // tmux carries a style over from line to line.
  let style = PLAIN
  const rows = lines.map((line, index) => {
    const drawn = drawLine(line, MARGIN + index * LINE, style)
    style = drawn.style
    return drawn.svg
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="${FONT}">
<title>The screen of /context in Pi</title>
<rect width="${width}" height="${height}" rx="8" fill="${COLORS.background}"/>
${rows.join('\n')}
</svg>
`
}

const PLAIN: Style = { color: COLORS.text, background: undefined, bold: false, dim: false, inverse: false }

function drawLine(line: string, top: number, from: Style): { svg: string; style: Style } {
  let style = from
  let column = 0
  const parts: string[] = []
  for (const piece of line.split(/(\x1b\[[\d;:]*m)/)) {
    const codes = /^\x1b\[([\d;:]*)m$/.exec(piece)?.[1]
    if (codes !== undefined) {
      style = styled(style, codes.split(/[;:]/).map(Number))
      continue
    }
    const cells = [...piece].length
    if (cells > 0) parts.push(drawRun(piece, column, top, style))
    column += cells
  }
  return { svg: parts.join(''), style }
}

function drawRun(text: string, column: number, top: number, style: Style): string {
  const cells = [...text].length
  const x = MARGIN + column * CELL
  const [color, background] = style.inverse ? [style.background ?? COLORS.background, style.color] : [style.color, style.background]
  const back = background === undefined ? '' : rect(x, top, cells, LINE, background)
  if (text.trim() === '') return back
  // Blocks and lines have to touch, which no font promises.
  if (/^[█▓▒░─]+$/.test(text)) return back + [...text].map((cell, index) => block(cell, x + index * CELL, top, color)).join('')
  const more = `${style.bold ? ' font-weight="bold"' : ''}${style.dim ? ' opacity="0.6"' : ''}`
  return `${back}<text x="${x.toFixed(1)}" y="${top + FONT}" fill="${color}" textLength="${(cells * CELL).toFixed(1)}" xml:space="preserve"${more}>${escape(text)}</text>`
}

const SHADES: Record<string, number> = { '█': 1, '▓': 0.75, '▒': 0.5, '░': 0.3 }

function block(cell: string, x: number, top: number, color: string): string {
  if (cell === '─') return `<rect x="${x.toFixed(1)}" y="${top + LINE / 2}" width="${CELL + 0.3}" height="1" fill="${color}"/>`
  return `<rect x="${x.toFixed(1)}" y="${top + 2}" width="${CELL + 0.3}" height="${LINE - 4}" fill="${color}" opacity="${SHADES[cell]}"/>`
}

function rect(x: number, top: number, cells: number, height: number, color: string): string {
  return `<rect x="${x.toFixed(1)}" y="${top}" width="${(cells * CELL).toFixed(1)}" height="${height}" fill="${color}"/>`
}

function styled(style: Style, codes: number[]): Style {
  let now = { ...style }
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0
    if (code === 0) now = { ...PLAIN }
    else if (code === 1) now.bold = true
    else if (code === 2) now.dim = true
    else if (code === 22) now = { ...now, bold: false, dim: false }
    else if (code === 7) now.inverse = true
    else if (code === 27) now.inverse = false
    else if (code === 39) now.color = PLAIN.color
    else if (code === 49) now.background = undefined
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(index + 1))
      if (code === 38) now.color = color
      else now.background = color
      index += used
    } else if (code >= 30 && code < 38) now.color = BASIC[code - 30]!
    else if (code >= 90 && code < 98) now.color = BASIC[code - 82]!
    else if (code >= 40 && code < 48) now.background = BASIC[code - 40]
  }
  return now
}

function extended([kind, first = 0, second = 0, third = 0]: number[]): [color: string, used: number] {
  if (kind === 2) return [`rgb(${first},${second},${third})`, 4]
  if (first < 16) return [BASIC[first]!, 2]
  if (first >= 232) return [`rgb(${Array(3).fill(8 + 10 * (first - 232)).join(',')})`, 2]
  const level = (value: number): number => (value === 0 ? 0 : 55 + 40 * value)
  const cube = first - 16
  return [`rgb(${level(Math.floor(cube / 36))},${level(Math.floor(cube / 6) % 6)},${level(cube % 6)})`, 2]
}

function escape(text: string): string {
  return text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`)
}
