/** The page in a real browser. CONTEXT_PICTURES names a folder for pictures of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Gateway } from '../../lib/gateway/gateway.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { startModelServer } from '../../rig/model-server.ts'
import { Browser, CHROMIUM } from './browser.ts'
import { AnthropicLoop, gatewayTo, long } from './support.ts'

afterEach(cleanUp)

const PICTURES = process.env['CONTEXT_PICTURES']

const focused = (name: string): string => `document.activeElement?.${name}`

/** Commands that agents run: the names that people see. */
const COMMANDS = [
  'npm test -- --run store',
  'rg -n "retry" src',
  'git diff --stat',
  'cat src/store/journal.ts',
  'sed -n 1,200p src/api/routes.ts',
  'ls -la src',
  'npx tsc --noEmit',
  'cat package.json',
]

/** A session with calls behind it. `isUsual`: outputs stay as long as they do by default. */
async function used(calls: number, isUsual = false): Promise<{ gateway: Gateway; loop: AnthropicLoop }> {
  const server = await startModelServer(() => 'ok')
  const { gateway } = await gatewayTo(server.url, { cwd: '/home/dev/shop', ...(isUsual && { open: { store: { kind: 'memory' } } }) })
  const other = new AnthropicLoop(gateway, 'session-0')
  await other.prompt('Which tests cover the journal?')
  for (let n = 0; n < 8; n += 1) await other.call('Bash', { command: COMMANDS[n] }, long(`o${n}`, 60))
  const loop = new AnthropicLoop(gateway)
  await loop.prompt('The journal loses its last entry when the disk is full. Find out why, and fix it.')
  for (let n = 0; n < calls; n += 1)
    await loop.call('Bash', { command: `${COMMANDS[n % COMMANDS.length]}${n < 8 ? '' : ` # ${n}`}` }, long(`n${n}`, 40 + (n % 7) * 30))
  return { gateway, loop }
}

describe.skipIf(CHROMIUM === undefined)('in Chromium', () => {
  test('by keyboard alone; live; nothing is asked of anybody else', async () => {
    const { gateway, loop } = await used(24)
    const browser = await Browser.start()
    await browser.look(1280, 900, false)
    await browser.open(gateway.pageUrl as string)
    await browser.until(`document.querySelectorAll('#calls tr').length === 25`)
    expect(await browser.value(`document.getElementById('live').textContent`)).toBe('live')
    expect(await browser.value(`document.querySelector('#sessions time').textContent`)).toMatch(/^just now$|minutes? ago$/)

    // The first stops of Tab: the link that skips, then the sessions.
    await browser.press('Tab')
    expect(await browser.value(focused('className'))).toBe('skip')
    await browser.press('Tab', 'ArrowDown')
    expect(await browser.value(focused('dataset.session'))).toBe('claude-code:session-0')
    await browser.press('Enter')
    await browser.until(`document.getElementById('head').textContent.includes('Which tests cover')`)
    expect(await browser.value(focused('dataset.session'))).toBe('claude-code:session-0')
    await browser.press('ArrowUp', 'Enter')
    await browser.until(`document.getElementById('head').textContent.includes('The journal loses')`)

    // Outputs: filter, choose, open, close, bring back, pin.
    await browser.press('/')
    expect(await browser.value(focused('id'))).toBe('filter')
    await browser.press(...'reference')
    await browser.until(`[...document.querySelectorAll('#outputs tr')].some((row) => row.hidden)`)
    await browser.press('Enter')
    expect(await browser.value(focused('tagName'))).toBe('TR')
    await browser.press('ArrowDown')
    const id = await browser.value<string>(focused('dataset.key'))
    expect(await browser.value(focused('textContent'))).toContain('reference')
    await browser.press('Enter')
    await browser.until(`document.getElementById('viewer').open && document.getElementById('viewer-text').textContent.length > 100`)
    await browser.press('Escape')
    await browser.until(`!document.getElementById('viewer').open`)
    expect(await browser.value(focused('dataset.key'))).toBe(id)
    await browser.press('b')
    await browser.until(`document.getElementById('said').textContent.includes('goes to the model')`)
    await browser.press('/', 'Escape')
    await browser.press('p')
    await browser.until(`/pinned/i.test(document.getElementById('said').textContent)`)

    // Live: a new call appears, and the focus stays where it was.
    const before = await browser.value<string>(focused('dataset.key'))
    await loop.call('Bash', { command: 'git log -1' }, long('later'))
    await browser.until(`document.querySelectorAll('#calls tr').length === 26`)
    expect(await browser.value(focused('dataset.key'))).toBe(before)

    await browser.press('s', ...'later', 'Enter')
    await browser.until(`document.querySelector('#hits li') !== null`)
    expect(browser.errors).toEqual([])
    const { origin } = new URL(gateway.pageUrl as string)
    expect(browser.requested.filter((url) => !url.startsWith(`${origin}/_context/`) && !url.startsWith('data:'))).toEqual([])
  })

  test('three widths, light and dark: nothing runs out of the page, and no figure is cut', async () => {
    const { gateway } = await used(90, true)
    const browser = await Browser.start()
    await browser.look(1280, 900, false)
    await browser.open(gateway.pageUrl as string)
    await browser.until(`document.querySelectorAll('#calls tr').length === 91`)
    for (const isDark of [false, true]) {
      for (const width of [1280, 800, 400]) {
        await browser.look(width, width === 400 ? 800 : 900, isDark)
        expect([width, await browser.value(`document.documentElement.scrollWidth <= innerWidth`)]).toEqual([width, true])
        // No figure, size or time is cut.
        const cut = `[...document.querySelectorAll('#outputs td.n, #outputs td.state, #calls td')].filter((cell) => cell.offsetParent !== null && cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)`
        expect([width, await browser.value(cut)]).toEqual([width, []])
        if (PICTURES === undefined) continue
        const name = `page-${width}-${isDark ? 'dark' : 'light'}`
        writeFileSync(join(PICTURES, `${name}.png`), await browser.picture())
        await browser.value(`scrollTo({ top: document.getElementById('outputs-title').offsetTop - 10, behavior: 'instant' })`)
        writeFileSync(join(PICTURES, `${name}-outputs.png`), await browser.picture())
        await browser.value(`scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })`)
        writeFileSync(join(PICTURES, `${name}-end.png`), await browser.picture())
        await browser.value(`scrollTo({ top: 0, behavior: 'instant' })`)
      }
    }
    expect(browser.errors).toEqual([])
  })

  test('each of 200 calls draws only the rows that it adds or changes', async () => {
    const { gateway, loop } = await used(2)
    const browser = await Browser.start()
    await browser.look(1280, 900, false)
    await browser.open(gateway.pageUrl as string)
    await browser.until(`document.querySelectorAll('#calls tr').length === 3`)
    await browser.value(`(() => {
      const rowOf = (node) => (node instanceof Element ? node : node.parentElement)?.closest('tr')
      window.drawn = 0
      const observer = new MutationObserver((changes) => {
        const rows = changes.flatMap(({ target, addedNodes }) => [rowOf(target), ...[...addedNodes].map(rowOf)])
        drawn += new Set(rows.filter(Boolean)).size
      })
      for (const id of ['calls', 'outputs']) observer.observe(document.getElementById(id), { childList: true, subtree: true })
    })()`)
    for (let n = 2; n < 200; n += 1) await loop.call('Bash', { command: `${COMMANDS[n % COMMANDS.length]} # ${n}` }, long(`n${n}`, 40 + (n % 7) * 30))
    await browser.until(`document.querySelectorAll('#calls tr').length === 201 && document.querySelectorAll('#outputs tr').length === 200`)
    const drawn = await browser.value<number>('drawn')
    // Its own two rows, the row before, and an output that leaves: 3.6. Whole lists would be 200.
    expect(drawn / 198).toBeLessThan(5)
    expect(browser.errors).toEqual([])
  })
})
