/** The pages of replay and inspect in a real browser. CONTEXT_PICTURES names a folder for pictures of them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../../rig/cleanup.ts'
import { Browser, CHROMIUM } from '../gateway/browser.ts'
import { cli, fixture, temporaryFolder } from './support.ts'

afterEach(cleanUp)

const { CONTEXT_PICTURES: PICTURES, CONTEXT_REPLAYED: REPLAYED } = process.env

/** Elements whose text is cut at the right, also if one could scroll to it. */
const CLIPPED = `[...document.querySelectorAll('body *')].filter((one) => {
  const { overflowX } = getComputedStyle(one)
  return one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && overflowX !== 'visible' && getComputedStyle(one).textOverflow !== 'ellipsis'
}).map((one) => one.tagName + ' ' + one.textContent.slice(0, 60))`

describe.skipIf(CHROMIUM === undefined)('in Chromium', () => {
  test('the report and the page of inspect at 1280, 800 and 400 pixels, light and dark: nothing runs out of the page, and no column is cut', async () => {
    const folder = temporaryFolder()
    const [report, page, store] = ['report.html', 'inspect.html', 'context.db'].map((name) => join(folder, name)) as [string, string, string]
    // Another folder of sessions can also be viewed.
    const sessions = REPLAYED === undefined ? [fixture('claude-code.jsonl'), fixture('pi-version-3.jsonl')] : [REPLAYED]
    await cli(['replay', ...sessions, '--policies', 'all', '--quiet', '--store', store, '--html', report])
    expect(await cli(['inspect', '--store', store, '--html', page])).toMatchObject({ code: 0 })
    const browser = await Browser.start()
    for (const [name, file] of [
      ['report', report],
      ['inspect', page],
    ] as const) {
      await browser.look(1280, 900, false)
      await browser.open(pathToFileURL(file).href)
      for (const isOpen of [false, true]) {
        await browser.value(`document.querySelectorAll('details').forEach((one) => { one.open = ${isOpen} })`)
        for (const isDark of [false, true]) {
          for (const width of [1280, 800, 400]) {
            await browser.look(width, 900, isDark)
            const about = [name, width, isOpen ? 'open' : 'closed']
            expect([...about, await browser.value(`document.documentElement.scrollWidth`)]).toEqual([...about, width])
            // On a phone, a table scrolls by itself.
            if (width > 400) expect([...about, await browser.value(CLIPPED)]).toEqual([...about, []])
            if (PICTURES !== undefined)
              writeFileSync(join(PICTURES, `${name}-${width}-${isDark ? 'dark' : 'light'}-${isOpen ? 'open' : 'closed'}.png`), await browser.picture())
          }
        }
      }
    }
    // The page is still that of inspect: a short name leads to its object.
    await browser.value(`document.querySelectorAll('details').forEach((one) => { one.open = false })`)
    const short = String(await browser.value(`document.querySelector('details > a[id]').id`))
    expect(short).toMatch(/^[0-9a-f]{8}$/)
    await browser.value(`location.hash = '${short}'`)
    expect(await browser.value(`document.getElementById('${short}').parentElement.open`)).toBe(true)
    expect(browser.errors).toEqual([])
    expect(browser.requested.filter((url) => !url.startsWith('file:') && !url.startsWith('data:'))).toEqual([])
  })
})
