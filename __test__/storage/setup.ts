/** Shared by the storage tests: directories, file systems, random values, child processes. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, onTestFinished } from 'vitest'
import type { IFileSystem } from '../../lib/storage/index.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A directory that is removed when the test ends. */
export async function directory(): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'storage-')))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** A file system in memory, with Node's codes. */
export function memoryFileSystem(): IFileSystem & { files: Map<string, string>; directories: Set<string> } {
  const files = new Map<string, string>()
  const directories = new Set<string>()
  const fail = (code: string, path: string) => Object.assign(new Error(`${code}: ${path}`), { code })
  const get = (path: string) => {
    const text = files.get(path)
    if (text === undefined) throw fail('ENOENT', path)
    return text
  }
  return {
    files,
    directories,
    async mkdir(path) {
      directories.add(path)
    },
    async writeFile(path, data, { flag }) {
      if (!directories.has(dirname(path))) throw fail('ENOENT', path)
      if (flag === 'wx' && files.has(path)) throw fail('EEXIST', path)
      files.set(path, data)
    },
    async readFile(path) {
      return get(path)
    },
    async readdir(path) {
      if (!directories.has(path)) throw fail('ENOENT', path)
      return [...files.keys()].filter((file) => dirname(file) === path).map((file) => basename(file))
    },
    async rename(from, to) {
      files.set(to, get(from))
      files.delete(from)
    },
    async unlink(path) {
      get(path)
      files.delete(path)
    },
    async stat(path) {
      get(path)
      return { isFile: () => true }
    },
  }
}

let built: Promise<string> | undefined

/** The storage entry as JavaScript, for child processes: resolves with the module's path. */
function build(): Promise<string> {
  built ??= (async () => {
    const out = await mkdtemp(join(tmpdir(), 'storage-build-'))
    afterBuild.push(out)
    const config = {
      compilerOptions: {
        module: 'nodenext',
        target: 'es2023',
        lib: ['es2023', 'esnext.disposable'],
        strict: true,
        rewriteRelativeImportExtensions: true,
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
        rootDir: ROOT,
        outDir: out,
        skipLibCheck: true,
        declaration: false,
      },
      files: [join(ROOT, 'lib/storage/index.ts')],
    }
    await writeFile(join(out, 'tsconfig.json'), JSON.stringify(config))
    await writeFile(join(out, 'package.json'), '{"type":"module"}')
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    await promisify(execFile)(process.execPath, [tsc, '-p', join(out, 'tsconfig.json')])
    return join(out, 'lib/storage/index.js')
  })()
  return built
}

const afterBuild: string[] = []
afterAll(async () => {
  for (const path of afterBuild) await rm(path, { recursive: true, force: true })
})

/** A child process that runs `script` (a module's text, with `ContextManager` and `dir` in scope). */
export async function child(script: string, dir: string): Promise<ChildProcess> {
  const module = pathToFileURL(await build()).href
  const text = `import { ContextManager } from ${JSON.stringify(module)}\nconst dir = ${JSON.stringify(dir)}\n${script}`
  const process_ = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    process_.kill('SIGKILL')
  })
  return process_
}

/** Resolves with the exit code (or the signal's name) of a child and what it printed. */
export async function ended(process_: ChildProcess): Promise<{ end: number | string; output: string }> {
  let output = ''
  process_.stdout?.on('data', (data) => {
    output += String(data)
  })
  const end = await new Promise<number | string>((resolve) => {
    process_.on('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  return { end, output }
}
