/** Pi whose tools run inside a sandbox: another root folder, with the project's folder mounted as `/workspace`. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { defaultFilesystemId } from '../../lib/index.ts'
import { cleanUp, newestSession, startRpc, temporaryFolder } from '../../rig/pi.ts'
import { calls } from '../../rig/reply.ts'
import { openStore, put, sessionIdOf, setUp } from './support.ts'

afterEach(cleanUp)

const canUnshare = process.platform === 'linux' && spawnSync('unshare', ['-rm', 'true']).status === 0
if (!canUnshare) process.stderr.write('not run: the tests in a sandbox need `unshare -rm`\n')

/** An extension whose `read` runs in the sandbox, as one does that calls `docker exec`. */
function toolsIn(root: string, project: string): string {
  const mounts = [
    ['/usr', 'usr'],
    [project, 'workspace'],
  ].map(([from, to]) => `mount --bind '${from}' '${join(root, to!)}'`)
  const enter = [...mounts, `exec chroot '${root}' "$@"`].join(' && ')
  return `import { execFileSync } from 'node:child_process'
export default (pi) => pi.registerTool({
  name: 'read', label: 'read', description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  async execute(_id, { path }) {
    const text = execFileSync('unshare', ['-rm', 'sh', '-c', ${JSON.stringify(enter)}, 'sh', '/usr/bin/env', '-C', '/workspace', 'cat', path], { encoding: 'utf8' })
    return { content: [{ type: 'text', text }], details: undefined }
  },
})`
}

test.skipIf(!canUnshare)('files of a mount are those of the host, and files inside the sandbox have the text that was read', async () => {
  const { server, home, store, load } = await setUp(
    (_request, n) => {
      if (n === 0) return calls(['read', { path: 'src/main.ts' }, 'call_main'], ['read', { path: '/etc/inside.conf' }, 'call_inside'])
      return `answer ${n}.`
    },
    { context: {} },
  )
  const root = temporaryFolder('sandbox-')
  for (const folder of ['usr', 'workspace', 'etc']) mkdirSync(join(root, folder))
  for (const folder of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${folder}`, join(root, folder))
  writeFileSync(join(root, 'etc', 'inside.conf'), 'color = blue\n')
  mkdirSync(join(home.cwd, 'src'))
  put(home, 'src/main.ts', 'const first = 1\n')
  const mounts = [{ agentPrefix: '/workspace', canonicalPrefix: home.cwd }]
  const other = join(home.root, 'tools.ts')
  writeFileSync(other, toolsIn(root, home.cwd))
  const env = { ...load.env, CONTEXT_SETTINGS: JSON.stringify({ modelTools: 'start', mounts, filesystemId: 'container-1' }) }
  const rpc = await startRpc({ ...load, env, extension: [other, load.extension] })
  await rpc.prompt('one')
  put(home, 'src/main.ts', 'const first = 2\n')
  await rpc.prompt('two')
  await rpc.close()
  expect(JSON.stringify(server.requests.at(-1)!.body)).toMatch(/stale [^"]*path=(\/workspace\/)?src\/main\.ts/)

  const manager = await openStore(store, sessionIdOf(newestSession(home.sessionsDir)!), home.cwd)
  const files = await manager.query({ type: 'file' })
  const found = files.map(({ source, content }) => [source?.['filesystemId'], source?.['path'], content])
  expect(found).toContainEqual([defaultFilesystemId() ?? expect.any(String), join(home.cwd, 'src/main.ts'), 'const first = 2\n'])
  expect(found).toContainEqual(['container-1', '/etc/inside.conf', 'color = blue\n'])
  expect(found).toHaveLength(2)
  await manager.close()
})
