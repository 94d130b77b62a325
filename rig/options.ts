/** The options with which a Pi is started, whatever the mode. */
import { MODEL } from './home.ts'
import type { PiHome } from './home.ts'

/** The options of both modes. */
export interface PiOptions {
  home: PiHome
  /** More arguments of Pi, in front of the prompts. */
  args?: string[]
  /** Extensions to load (`-e`): files or folders. None by default; discovery is off in either case. */
  extension?: string | readonly string[]
  /** Default: the home's empty folder. */
  cwd?: string
  /** Variables over the home's. */
  env?: Record<string, string>
  /** Milliseconds until the process is killed and the run fails with its output; default 60,000. */
  timeoutMs?: number
}

/** The arguments that both modes share. */
export function piArguments(options: PiOptions): string[] {
  const extensions = typeof options.extension === 'string' ? [options.extension] : (options.extension ?? [])
  return ['--model', MODEL, '--no-extensions', ...extensions.flatMap((path) => ['-e', path]), ...(options.args ?? [])]
}
