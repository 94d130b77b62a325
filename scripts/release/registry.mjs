/** A registry on loopback that has some tarballs and nothing else, for installations that must find all they need there. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { basename } from 'node:path'

/**
 * Serves tarballs until it is closed.
 * @param {readonly string[]} tarballs their paths
 * @returns {Promise<{url: string, close(): Promise<void>}>}
 */
export async function serve(tarballs) {
  const packages = new Map()
  const files = new Map()
  for (const path of tarballs) {
    const bytes = readFileSync(path)
    const text = execFileSync('tar', ['-xzOf', path, 'package/package.json'], { encoding: 'utf8' })
    const manifest = JSON.parse(text)
    files.set(`/tarballs/${basename(path)}`, bytes)
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
    packages.set(manifest.name, { manifest, integrity, file: basename(path) })
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/')
    const file = files.get(path)
    const found = packages.get(path.slice(1))
    if (file !== undefined) return void response.end(file)
    if (found === undefined) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}')
    const { manifest, integrity, file: name } = found
    const dist = { tarball: `http://127.0.0.1:${server.address().port}/tarballs/${name}`, integrity }
    const versions = { [manifest.version]: { ...manifest, dist } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ name: manifest.name, 'dist-tags': { latest: manifest.version }, versions }))
  })
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve(undefined))
        server.closeAllConnections()
      }),
  }
}
