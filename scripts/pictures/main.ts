/** The runs behind the pictures: the demo's agent in the real Pi in a terminal, and a replay of recorded sessions. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { EXTENSION } from '../../__test__/rig/extension.ts'
import { startModelServer } from '../../__test__/rig/model-server.ts'
import { cleanUp, createPiHome, temporaryFolder } from '../../__test__/rig/pi.ts'
import { piArguments } from '../../__test__/rig/options.ts'
import { createAgent } from '../../demo/agent.ts'
import { copyRepository, filesToRead, repositoryFiles } from '../../demo/workspace.ts'
import { findRuntime } from '../../pi-runtime/index.mjs'
import { photograph } from './report.ts'
import { drawTerminal } from './svg.ts'
import { Terminal } from './tmux.ts'

/** The size of the picture in the README. */
const PICTURE = { columns: 100, rows: 30 }

const SIZES = [PICTURE, ...[60, 100, 180].flatMap((columns) => [16, 50].map((rows) => ({ columns, rows })))]

/** How many of the demo's prompts to send. The last ones would only repeat what is visible already. */
const PROMPTS = 13

/** The prices of a good model, in dollars per million tokens. */
const COST = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }

const { values } = parseArgs({ options: { screens: { type: 'string' }, report: { type: 'string' } } })
const pictures = fileURLToPath(new URL('../../docs/pictures', import.meta.url))
mkdirSync(pictures, { recursive: true })

try {
  if (values.report === undefined) await draw()
  else photograph(values.report, join(pictures, 'report.png'))
} finally {
  await cleanUp()
}

async function draw(): Promise<void> {
  const files = repositoryFiles()
  const folders = [...new Set(files.filter((path) => path.includes('/')).map((path) => path.split('/')[0]!))]
  const agent = createAgent(filesToRead(files, 10), folders)
  const server = await startModelServer(agent.script)
  const home = createPiHome({ server, model: { cost: COST }, root: temporaryFolder('pictures-') })
  const cwd = join(home.home, 'project')
  mkdirSync(cwd)
  copyRepository(files, cwd)
  // The question of a first start would take the first prompt for its answer.
  const { NO_COLOR: _, ...variables } = home.env
  const env = { ...variables, CONTEXT_SETTINGS: '{"redact":false}' }
  const command = [...findRuntime().command, ...piArguments({ home, extension: EXTENSION })]
  const terminal = new Terminal({ command, cwd, env, ...PICTURE })
  try {
    // Pi sets the window's title once it has started. Before that it accepts no input.
    const unnamed = terminal.title
    await terminal.until(() => terminal.title !== unnamed)
    for (const [index, prompt] of agent.prompts.slice(0, PROMPTS).entries()) {
      terminal.enter(prompt)
      await terminal.until(() => agent.round === index + 1 && agent.doing === 'answer')
      await terminal.settles()
    }
    for (const size of SIZES) {
      terminal.resize(size)
      await terminal.settles()
      terminal.enter('/context')
      await terminal.sees(/esc close/)
      await terminal.settles()
      if (values.screens !== undefined) {
        mkdirSync(values.screens, { recursive: true })
        const file = join(values.screens, `context-${size.columns}x${size.rows}.txt`)
        writeFileSync(file, `${terminal.screen()}\n`)
      }
      if (size === PICTURE) writeFileSync(join(pictures, 'context.svg'), drawTerminal(terminal.screen(true), size.columns))
      terminal.press('Escape')
      await terminal.settles()
    }
  } finally {
    terminal.end()
  }
  if (server.problems.length > 0) throw new Error(server.problems.join('; '))
}
