/** The picture of the replay report. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { temporaryFolder } from '../../__test__/rig/pi.ts'

/** The verdict, the totals, and the charts of the first session. */
const [WIDTH, HEIGHT] = [1100, 1234]

/** Replays the sessions directly in a folder and takes a picture of the page, with its first session unfolded. */
export async function photograph(sessions: string, picture: string): Promise<void> {
  const browser = process.env['CHROMIUM'] ?? 'chromium'
  const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const page = join(temporaryFolder('pictures-'), 'report.html')
  const files = readdirSync(sessions).filter((name) => /\.jsonl(\.gz)?$/.test(name)).sort()
  const paths = files.map((name) => join(sessions, name))
  execFileSync(process.execPath, [program, 'replay', ...paths, '--quiet', '--html', page], { stdio: ['ignore', 'ignore', 'inherit'] })
  writeFileSync(page, unfolded(readFileSync(page, 'utf8')))
  await screenshot(page, picture)
}

async function screenshot(page: string, picture: string): Promise<void> {
  const { default: puppeteer } = await import(process.env['PUPPETEER'] ?? 'puppeteer-core')
  const browser = await puppeteer.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    headless: 'shell',
    args: ['--no-sandbox', '--no-zygote', '--single-process', '--disable-gpu'],
  })
  try {
    const tab = await browser.newPage()
    await tab.setViewport({ width: WIDTH, height: HEIGHT })
    await tab.goto(pathToFileURL(page).href)
    await tab.screenshot({ path: picture })
  } finally {
    await browser.close()
  }
}

/** The page with the session open that comes first in the order of its style. */
function unfolded(html: string): string {
  const orders = [...html.matchAll(/<details class="session" style="order:(-?\d+)"/g)].map((found) => Number(found[1]))
  const first = `<details class="session" style="order:${Math.min(...orders)}"`
  return html.replace(first, `${first} open`)
}
