/** A consumer's compiler: strict, with all declarations checked; and README's example as it is written. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { folder } from './core/setup.ts'
import { cleanUp } from '../rig/cleanup.ts'

afterEach(cleanUp)

const execute = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

/** Another project, in which the package is installed. */
function consumer(packages: readonly string[] = []): string {
  const cwd = folder()
  mkdirSync(join(cwd, 'node_modules', '@types'), { recursive: true })
  mkdirSync(join(cwd, 'node_modules', '@earendil-works'), { recursive: true })
  symlinkSync(root, join(cwd, 'node_modules', 'pi-context-manager'))
  for (const name of ['@types/node', ...packages]) symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
  writeFileSync(join(cwd, 'package.json'), '{ "type": "module", "private": true }')
  return cwd
}

async function compile(cwd: string, options: object): Promise<string> {
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: ['node'],
    ...options,
  }
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  try {
    return (await execute(process.execPath, [tsc, '-p', cwd], { cwd, encoding: 'utf8' })).stdout
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

test('a strict consumer that checks all declarations', async () => {
  const cwd = consumer()
  writeFileSync(
    join(cwd, 'use.ts'),
    `import { ContextManager } from 'pi-context-manager'
import type { Content, OpenOptions, ShapeName } from 'pi-context-manager'
import { Projection } from 'pi-context-manager/harness'
import { ContextManager as Outputs } from 'pi-context-manager/storage'
const content: Content = new Uint8Array(3)
const shape: ShapeName = 'anthropic'
const options: OpenOptions = { sessionId: 's', cwd: '/', shape }
interface Mine { role: 'user'; content: string; mine: number }
const messages: Mine[] = []
await using manager = await ContextManager.open(options)
await manager.indexFile('a', content)
const sent: Mine[] = await manager.transformContext(messages)
const same: Mine[] = await new Projection(manager).transform(messages)
// @ts-expect-error messages are a list
await manager.transformContext('go')
console.log(sent, same, Outputs.hashQuery('q'))
`,
  )
  expect(await compile(cwd, { skipLibCheck: false, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true })).toBe('')
})

test('pi-agent-core’s Agent takes transformContext without a cast', async () => {
  const cwd = consumer(['@earendil-works/pi-agent-core', '@earendil-works/pi-ai', 'typebox'])
  writeFileSync(
    join(cwd, 'use.ts'),
    `import { Agent } from '@earendil-works/pi-agent-core'
import { streamSimple } from '@earendil-works/pi-ai/api/openai-completions'
const streamFn = streamSimple as never
import { ContextManager } from 'pi-context-manager'
import { contextFor } from 'pi-context-manager/pi-agent-core'
const manager = await ContextManager.open({ sessionId: 's', cwd: '/' })
const context = contextFor({ sessionId: 't' })
export const agents = [
  new Agent({ streamFn, transformContext: (messages) => manager.transformContext(messages) }),
  new Agent({ streamFn, transformContext: context.transformContext, initialState: { tools: context.tools } }),
]
`,
  )
  expect(await compile(cwd, { skipLibCheck: true })).toBe('')
})

test('README’s example runs as it is written, in plain JavaScript on this Node', async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const part = readme.slice(readme.indexOf('## For TypeScript harnesses'))
  const example = /```js\n([\s\S]*?)```/.exec(part)?.[1]
  expect(example).toBeDefined()
  const cwd = consumer()
  mkdirSync(join(cwd, 'src'))
  writeFileSync(join(cwd, 'src', 'auth.ts'), 'export const login = false\n')
  writeFileSync(join(cwd, 'example.mjs'), example!)
  const { stdout, stderr } = await execute(process.execPath, ['example.mjs'], { cwd, encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '', HOME: cwd } })
  expect(stderr).toBe('')
  expect(stdout.trim()).toMatch(/^1 failing/)
})
