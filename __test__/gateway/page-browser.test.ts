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

  test('200 calls come in without jerking', async () => {
    const { gateway, loop } = await used(2)
    const browser = await Browser.start()
    await browser.look(1280, 900, false)
    await browser.open(gateway.pageUrl as string)
    await browser.until(`document.querySelectorAll('#calls tr').length === 3`)
    // In the time of the main thread, which other work of this machine does not prolong.
    await browser.send('Performance.enable', { timeDomain: 'threadTicks' })
    const busy = async (): Promise<number> => {
      const { metrics } = (await browser.send('Performance.getMetrics')) as { metrics: { name: string; value: number }[] }
      return 1000 * metrics.find(({ name }) => name === 'TaskDuration')!.value
    }
    const before = await busy()
    await browser.value(`(() => {
      window.tasks = []
      new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })
      window.frames = []
      let last = performance.now()
      requestAnimationFrame(function frame(now) { frames.push(now - last); last = now; requestAnimationFrame(frame) })
    })()`)
    for (let n = 2; n < 200; n += 1) await loop.call('Bash', { command: `${COMMANDS[n % COMMANDS.length]} # ${n}` }, long(`n${n}`, 40 + (n % 7) * 30))
    await browser.until(`document.querySelectorAll('#calls tr').length === 201 && document.querySelectorAll('#outputs tr').length === 200`)
    const { tasks, frames } = await browser.value<{ tasks: number[]; frames: number[] }>(`({ tasks, frames })`)
    const sorted = frames.toSorted((one, other) => one - other)
    const at = (share: number): number => Math.round(sorted[Math.floor(share * sorted.length)] as number)
    const each = ((await busy()) - before) / 198
    process.stderr.write(
      `200 calls on the page: ${each.toFixed(1)} ms of its main thread for each; ${frames.length} frames, median ${at(0.5)} ms, p99 ${at(0.99)} ms; ${tasks.length} long tasks, longest ${Math.round(Math.max(0, ...tasks))} ms\n`,
    )
    expect(each).toBeLessThan(20)
    expect(browser.errors).toEqual([])
  })
})
