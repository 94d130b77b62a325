/** The golden vectors through the class; crates/model/tests/golden.rs compares all of them with the model itself. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { ObjectDocument, Toolcall } from '../lib/index.ts'
import { expectedHashes, folder, opened, sha256 } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'
import { random } from '../rig/random.ts'

afterEach(cleanUp)

function fixture<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../fixtures/golden/${name}.json`, import.meta.url), 'utf8')) as T
}

interface Made extends Partial<Toolcall> {
  type: string
  path?: string
  text?: string | null
}

interface Hashes {
  filesystemId: string
  sessionId: string
  mount: { agentPrefix: string; canonicalPrefix: string }
  cases: { name: string; make: Made; document: ObjectDocument }[]
}

const hashes = fixture<Hashes>('hashes')

/** A session whose paths are those of the vectors. */
async function golden() {
  const { filesystemId, sessionId, mount } = hashes
  return opened({ sessionId, cwd: mount.agentPrefix, mounts: [{ ...mount, filesystemId }] })
}

describe('documents', () => {
  test.each(hashes.cases)('the class gives $name', async ({ make, document }) => {
    const manager = await golden()
    const { agentPrefix, canonicalPrefix } = hashes.mount
    if (make.type === 'file') {
      const path = agentPrefix + make.path!.slice(canonicalPrefix.length)
      const [id] = make.text === null ? (await manager.discover([path])).map((result) => result.id) : [(await manager.indexFile(path, make.text)).id]
      expect(id).toBe(document['xt/id'])
    } else if (make.type === 'toolcall') {
      const { type: _, ...call } = make
      expect(await manager.recordToolcall(call as Toolcall)).toBe(document['xt/id'])
    } else if (make.type === 'system_prompt') {
      await manager.setSystemPrompt(make.text!)
    }
    const { outcome, records_evidence, folder, ...got } = (await manager.get(document['xt/id'])) as Record<string, unknown>
    // The fields that the engine adds to the model's document are part of its content hash.
    const isAdded = [outcome, records_evidence, folder].some((field) => field !== undefined)
    expect(got).toEqual(isAdded ? { ...document, content_hash: got['content_hash'] } : document)
    if (isAdded) expect(got['content_hash']).not.toBe(document['content_hash'])
  })
})

interface Rendering {
  files: { path: string; line: string }[]
  toolcalls: { id: string; tool: string; status: 'ok' | 'fail'; line: string; reference: string }[]
  blocks: { id: string; content: string; block: string }[]
}

const rendering = fixture<Rendering>('rendering')

describe('rendered lines', () => {
  test.each(rendering.files)('of a file at $path', async ({ path, line }) => {
    const manager = await opened({ cwd: '/', mounts: [{ agentPrefix: '/w', canonicalPrefix: '/v', filesystemId: 'f' }] })
    const { id } = await manager.indexFile(path, 'x')
    const { metadataPool } = await manager.assemble()
    expect(metadataPool.split('\n')).toHaveLength(1)
    const toPath = line.slice(0, line.lastIndexOf(' file_type=')).replace('id=ab12', `id=${id}`)
    expect(metadataPool.startsWith(`${toPath} file_type=`)).toBe(true)
  })

  test.each(rendering.toolcalls.filter((vector) => vector.id !== ''))('of a call $id', async (vector) => {
    const { id, tool, status, line, reference } = vector
    const manager = await opened({ cwd: folder() })
    await manager.recordToolcall({ id, tool, args: {}, content: 'x', status })
    const view = await manager.assemble()
    expect(view.metadataPool).toBe(line)
    expect(JSON.stringify(view.chat)).toContain(JSON.stringify(reference).slice(1, -1))
  })

  test.each(rendering.blocks)('of the content of $id', async ({ id, content, block }) => {
    const manager = await opened({ cwd: folder() })
    await manager.recordToolcall({ id, tool: 't', args: {}, content, status: 'ok' })
    const view = await manager.assemble()
    expect(view.activeContent).toBe(block)
    expect(view.blocks).toEqual([{ id, content }])
  })
})

describe('hashes of values that JavaScript can hold', () => {
  test('lone surrogates become the replacement character, and nothing crashes', async () => {
    const manager = await opened({ cwd: folder() })
    const args = { text: 'a\ud800', pair: '\ud83d\ude00', other: '\udc00b' }
    const id = await manager.recordToolcall({ id: 'c', tool: 't\ud800', args, content: '\ud800x\udfff', status: 'ok' })
    const document = (await manager.get(id))!
    expect(document.content).toBe('\ufffdx\ufffd')
    expect(document['args']).toEqual({ text: 'a\ufffd', pair: '\u{1f600}', other: '\ufffdb' })
    expect(document).toMatchObject(expectedHashes(document))
    const file = (await manager.get((await manager.indexFile('f', '\ud800')).id))!
    expect(file).toMatchObject({ content: '\ufffd', char_count: 1, source_hash: sha256('\ufffd') })
  })

  test('random arguments', async () => {
    const manager = await opened({ cwd: folder() })
    const { below } = random(42)
    for (let n = 0; n < 300; n++) {
      const args = Object.fromEntries(Array.from({ length: below(5) }, () => [text(below), value(below, 4)]))
      const id = await manager.recordToolcall({ id: `call ${n}`, tool: 't', args, content: text(below), status: 'ok' })
      const document = (await manager.get(id))!
      expect(document['args']).toEqual(JSON.parse(JSON.stringify(args)))
      expect(document).toMatchObject(expectedHashes(document))
    }
  })
})

function text(below: (below: number) => number): string {
  const points = [0x61, 0x22, 0x5c, 0x2f, 0x0a, 0x01, 0x7f, 0xe9, 0x2028, 0xe000, 0x1f600, 0xffff, 0x10ffff]
  return Array.from({ length: below(6) }, () => String.fromCodePoint(points[below(points.length)]!)).join('')
}

function value(below: (below: number) => number, depth: number): unknown {
  const numbers = [0, -0, 1, -1, 0.1, 1e21, 1e-7, 5e-324, 2 ** 53, -(2 ** 31) - 1, 123456.789, 1.7976931348623157e308]
  switch (below(depth > 0 ? 7 : 4)) {
    case 0:
      return null
    case 1:
      return below(2) === 0
    case 2:
      return numbers[below(numbers.length)]
    case 3:
      return text(below)
    case 4:
      return Array.from({ length: below(4) }, () => value(below, depth - 1))
    default:
      return Object.fromEntries(Array.from({ length: below(4) }, () => [text(below), value(below, depth - 1)]))
  }
}
