/** The picture of the replay report. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { temporaryFolder } from '../../__test__/rig/pi.ts'

/** The verdict, the totals, and the list of sessions. */
const [WIDTH, HEIGHT] = [1100, 1330]

/** Replays the sessions directly in a folder and takes a picture of the page. */
export function photograph(sessions: string, picture: string): void {
  const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const page = join(temporaryFolder('pictures-'), 'report.html')
  const files = readdirSync(sessions).filter((name) => /\.jsonl(\.gz)?$/.test(name)).sort()
  const paths = files.map((name) => join(sessions, name))
  execFileSync(process.execPath, [program, 'replay', ...paths, '--quiet', '--html', page], { stdio: ['ignore', 'ignore', 'inherit'] })
  screenshot(page, picture)
}

function screenshot(page: string, picture: string): void {
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const size = [`--window-size=${WIDTH},${HEIGHT}`, '--hide-scrollbars']
  rmSync(picture, { force: true })
  const flags = ['--headless', '--disable-gpu', '--no-zygote', ...sandbox, ...size, `--screenshot=${picture}`]
  execFileSync(process.env['CHROMIUM'] ?? 'chromium', [...flags, pathToFileURL(page).href], { stdio: 'ignore' })
  if (!existsSync(picture)) throw new Error('the browser took no picture')
}
