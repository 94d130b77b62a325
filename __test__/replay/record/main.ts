/**
 * Records the sessions in fixtures/sessions by running the real Pi with a scripted model, and derives the older
 * formats from what it wrote. Run it by `node scripts/record-sessions.mjs`; the recordings are kept in git, because
 * Pi's IDs and times differ at every run.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startModelServer } from '../../rig/model-server.ts'
import { cleanUp, createPiHome, startRpc } from '../../rig/pi.ts'
import type { PiRpc } from '../../rig/pi.ts'
import type { Reply } from '../../rig/reply.ts'
import type { ModelRequest } from '../../rig/request.ts'
import { DEAD_END, FIRST, SECOND, SUMMARY, THIRD } from './agent.ts'
import type { Round } from './agent.ts'
import { asClaudeCode, asVersion1, asVersion2 } from './convert.ts'
import { writeShop } from './workspace.ts'

const here = dirname(fileURLToPath(import.meta.url))
const checkout = join(here, '..', '..', '..')
const folder = join(checkout, 'fixtures', 'sessions')

/** A picture of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

try {
  const text = await record()
  write('pi-version-3.jsonl', text)
  write('pi-version-2.jsonl', asVersion2(text))
  write('pi-version-1.jsonl', asVersion1(text))
  write('claude-code.jsonl', asClaudeCode(text))
} finally {
  await cleanUp()
}

/** One session: work, a way back, a picture, a command of the user's own, a compaction, and the rest. */
async function record(): Promise<string> {
  let answers: Reply[] = []
  const server = await startModelServer((request: ModelRequest) => {
    if (request.kind !== 'agent') return { text: SUMMARY }
    const next = answers.shift()
    if (next === undefined) throw new Error('the script has no answer left')
    return next
  })
  const home = createPiHome({
    server,
    api: 'anthropic-messages',
    model: { reasoning: true, cost: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 } },
    settings: { compaction: { enabled: true, reserveTokens: 16384, keepRecentTokens: 4000 } },
  })
  writeShop(home.cwd)
  const rpc = await startRpc({ home, extension: join(here, 'navigate.ts') })
  const work = async (rounds: Round[]): Promise<void> => {
    for (const round of rounds) {
      answers = [...round.answers]
      await rpc.prompt(round.prompt)
      if (answers.length > 0) throw new Error(`${answers.length} answers were not asked for after "${round.prompt}"`)
    }
  }
  await work(FIRST)
  const turn = await leaf(rpc)
  await work(DEAD_END)
  await rpc.command({ type: 'prompt', message: `/goto ${turn}` })
  await work(SECOND)
  await rpc.command({ type: 'bash', command: 'git status || echo "no repository here"' })
  answers = [{ text: 'A single dark pixel; there is nothing to read on it.' }]
  const from = rpc.mark
  const images = [{ type: 'image', data: PIXEL, mimeType: 'image/png' }]
  await rpc.command({ type: 'prompt', message: 'What is on this picture?', images })
  await rpc.waitFor('agent_settled', from)
  await rpc.command({ type: 'compact' })
  await work(THIRD)
  const { sessionFile } = await rpc.state()
  await rpc.close()
  server.check()
  return readFileSync(sessionFile as string, 'utf8')
    .replaceAll(home.cwd, '/home/dev/shop')
    .replaceAll(home.root, '/home/dev')
    .replaceAll(checkout, '/home/dev/.npm-global/lib')
}

async function leaf(rpc: PiRpc): Promise<string> {
  const { leafId } = (await rpc.command({ type: 'get_entries' })) as { leafId: string }
  return leafId
}

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
  process.stdout.write(`${name}: ${text.length} characters, ${text.split('\n').length - 1} lines\n`)
}
