/** The picture of lab/front.mjs: cost against strong missed uses, a point for each setting. */
import { escape } from '../dist/ui/chart.js'

const WIDTH = 640
const HEIGHT = 400
const LEFT = 56
const RIGHT = 24
const TOP = 20
const BOTTOM = 48
const PEERS = new Set(['pi', 'clear', 'mask'])

/** An SVG of rows with a name, `ratios.small` and `uses`; settings are joined in the order of their cost. */
export function drawFront(rows) {
  const points = rows.map((row) => ({
    name: row.name,
    cost: row.ratios.small,
    strong: (100 * row.uses.toolText.strong) / row.calls,
    peer: row.peer ?? PEERS.has(row.name),
  }))
  const right = Math.ceil(10 * Math.max(1, ...points.map(({ cost }) => cost))) / 10
  const top = Math.ceil(Math.max(1, ...points.map(({ strong }) => strong)))
  const x = (cost) => LEFT + ((WIDTH - LEFT - RIGHT) * cost) / right
  const y = (strong) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * strong) / top
  const text = (at, down, words, rest = '') => `<text x="${at.toFixed(1)}" y="${down.toFixed(1)}" ${rest}>${escape(words)}</text>`
  const grid = []
  for (let cost = 0; cost <= right + 1e-9; cost += 0.2) {
    grid.push(`<line x1="${x(cost).toFixed(1)}" x2="${x(cost).toFixed(1)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>`)
    grid.push(text(x(cost), HEIGHT - BOTTOM + 16, cost.toFixed(1), 'text-anchor="middle"'))
  }
  for (let strong = 0; strong <= top; strong += Math.max(1, Math.round(top / 8))) {
    grid.push(`<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(strong).toFixed(1)}" y2="${y(strong).toFixed(1)}"/>`)
    grid.push(text(LEFT - 6, y(strong) + 4, String(strong), 'text-anchor="end"'))
  }
  const joined = points.filter(({ peer }) => !peer).sort((left, other) => left.cost - other.cost)
  const path = joined.map(({ cost, strong }) => `${x(cost).toFixed(1)},${y(strong).toFixed(1)}`).join(' ')
  const marks = points.map(({ name, cost, strong, peer }) => {
    const end = cost > 0.85 * right
    const label = text(x(cost) + (end ? -8 : 8), y(strong) - 7, name, end ? 'text-anchor="end"' : '')
    return `<circle cx="${x(cost).toFixed(1)}" cy="${y(strong).toFixed(1)}" r="4.5" fill="${peer ? '#d5672b' : '#1f6feb'}"/>${label}`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Cost against strong missed uses" font-family="system-ui,sans-serif" font-size="12" fill="#777">
<g stroke="#8884" fill="#777" stroke-width="1">${grid.join('').replaceAll('<text', '<text stroke="none"')}</g>
<polyline points="${path}" fill="none" stroke="#1f6feb" stroke-width="1.5" stroke-dasharray="4 3"/>
${marks.join('\n')}
${text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, 'cost / Pi (system part of 3,000 tokens)', 'text-anchor="middle"')}
${text(LEFT, 13, 'strong missed uses of tool text per 100 calls')}
</svg>
`
}
