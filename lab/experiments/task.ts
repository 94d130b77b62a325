/** The tasks that an experiment gives an agent, and their judgement. */
import type { Reply } from '../../rig/reply.ts'

/** One task, made from a seed: the same seed gives the same files, prompts and judgement. */
export interface Task {
  name: string
  /** Files of the scratch repository by path. */
  files: Record<string, string>
  /** The user's messages, in order. Fixed: a change makes earlier reports incomparable. */
  prompts: string[]
  /** Why the work in a folder is not what was asked for; undefined where it is. */
  judge(folder: string): string | undefined
  /** The scripted model's answers to each prompt: the work of an agent that makes no mistake. */
  script: Reply[][]
}

/** Makes a task from a seed. */
export type TaskMaker = (seed: number) => Task
