/** Records a thousand secrets of twenty kinds in the store that the arguments name, and says how far it is. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const LOWER = 'abcdefghijklmnopqrstuvwxyz0123456789'
const LETTERS = `ABCDEFGHIJKLMNOPQRSTUVWXYZ${LOWER}`
const HEX = '0123456789abcdef'
const DIGITS = '0123456789'

/** Number of secrets of each kind. */
export const EACH = 50

/** `length` characters that look random. */
function random(seed, alphabet, length) {
  let text = ''
  for (let n = 0; text.length < length; n += 1)
    for (const byte of createHash('sha256').update(`${seed} ${n}`).digest()) text += alphabet[byte % alphabet.length]
  return text.slice(0, length)
}

/** The secrets of one round, one of each kind. They are put together here, so that no scanner takes this file for a leak. */
export function kinds(n) {
  const of = (alphabet, length) => random(`secret ${n}`, alphabet, length)
  return [
    `AK${'IA'}${of('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16)}`,
    `gh${'p_'}${of(LETTERS, 36)}`,
    `github${'_pat_'}${of(LETTERS, 82)}`,
    `glp${'at-'}${of(LETTERS, 20)}`,
    `xo${'xb-'}${of(DIGITS, 12)}-${of(DIGITS, 12)}-${of(LETTERS, 24)}`,
    `sk${'_live_'}${of(LETTERS, 24)}`,
    `AI${'za'}${of(LETTERS, 35)}`,
    `np${'m_'}${of(LOWER, 36)}`,
    `pypi${'-AgEIcHlwaS5vcmc'}${of(LETTERS, 80)}`,
    `sk-${of(LETTERS, 20)}${'T3BlbkFJ'}${of(LETTERS, 20)}`,
    `sk-${'ant-api03-'}${of(LETTERS, 93)}AA`,
    `S${'G.'}${of(LOWER, 66)}`,
    `S${'K'}${of(HEX, 32)}`,
    `shp${'at_'}${of(HEX, 32)}`,
    `dop${'_v1_'}${of(HEX, 64)}`,
    `h${'f_'}${of('abcdefghijklmnopqrstuvwxyz', 34)}`,
    `da${'pi'}${of(HEX, 32)}`,
    `lin${'_api_'}${of(LOWER, 40)}`,
    `pu${'l-'}${of(HEX, 40)}`,
    `-----BEGIN RSA PRIVATE ${'KEY-----'}\n${of(LETTERS, 256)}\n-----END RSA PRIVATE KEY-----`,
  ]
}

/** A part of each secret that no other text has: its second half. A word of the index may have lost its beginning, and an export has no line breaks. */
export const ends = Array.from({ length: EACH }, (_, n) => kinds(n).map((secret) => secret.slice(secret.length / 2, -3).split('\n')[0])).flat()

async function record([path, folder, redact]) {
  const { ContextManager } = await import('../dist/index.js')
  const store = { kind: 'sqlite', path, durability: 'process' }
  const manager = await ContextManager.open({ sessionId: 's', cwd: folder, store, watch: false, redact: redact === 'true' })
  for (let n = 0; n < EACH; n += 1) {
    // Writes that arrive at the same time share a transaction.
    const all = kinds(n).map(async (secret, kind) => {
      const [id, text] = [`c${n}-${kind}`, `first line\nkey is ${secret}\nlast line\n`]
      if (n % 4 === 0) {
        writeFileSync(join(folder, id), text)
        await manager.indexFile(id)
      } else if (n % 4 === 1) await manager.appendTurn({ role: 'user', content: text })
      else if (n % 4 === 2) await manager.recordToolcall({ id, tool: 'bash', args: { command: text }, content: 'done', status: 'ok' })
      else await manager.recordToolcall({ id, tool: 'bash', args: { command: 'env' }, content: text, status: 'ok' })
    })
    await Promise.all(all)
    process.stdout.write(`${n}\n`)
  }
  await manager.close()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await record(process.argv.slice(2))
