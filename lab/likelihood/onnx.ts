/**
 * ONNX Runtime, in a process of Python: two to three times as fast as llama.cpp here, for models of one architecture
 * (onnx/convert.py). docs/harm.md compares the two. llama.cpp still splits the text into tokens.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'
import { Llama } from './llama.ts'
import type { LlamaOptions } from './llama.ts'
import type { Model } from './model.ts'

/** Tokens of the context of llama.cpp, which decodes nothing here. */
const UNUSED_CONTEXT = 64

/** The options of llama.cpp, with the graph and the Python that runs it. */
export interface OnnxOptions extends LlamaOptions {
  graph: string
  /** The interpreter of an environment with `onnxruntime`. */
  python: string
}

/** One answer of serve.py. */
interface Answered {
  nats: number[]
  decoded: number
}

/** A model whose graph runs in a second process, which ends with this one. */
export class Onnx implements Model {
  readonly #tokens: Llama
  readonly #process: ChildProcess
  readonly #lines: Interface
  readonly #ended: Promise<string>
  decoded = 0

  /** Starts the process; its messages go to this one's standard error. */
  constructor({ graph, python, context, threads, ...llama }: OnnxOptions) {
    this.#tokens = new Llama({ ...llama, context: UNUSED_CONTEXT, threads })
    const script = join(import.meta.dirname, 'onnx/serve.py')
    this.#process = spawn(python, [script, graph, String(context), String(threads)], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#ended = once(this.#process, 'exit').then(
      ([code]) => `serve.py ended with ${String(code)}`,
      (error: unknown) => `serve.py did not start: ${String(error)}`,
    )
    this.#lines = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream })
  }

  tokenize(text: string, hasMarks: boolean): number[] {
    return this.#tokens.tokenize(text, hasMarks)
  }

  bytesOf(token: number): Buffer {
    return this.#tokens.bytesOf(token)
  }

  async nats(prompt: readonly number[], answer: readonly number[]): Promise<Float32Array> {
    this.#process.stdin?.write(`${JSON.stringify({ prompt, answer })}\n`)
    const answered = await Promise.race([once(this.#lines, 'line').then(([line]) => JSON.parse(line as string) as Answered), this.#ended])
    if (typeof answered === 'string') throw new Error(answered)
    this.decoded += answered.decoded
    return Float32Array.from(answered.nats)
  }

  close(): void {
    this.#process.stdin?.end()
  }
}
