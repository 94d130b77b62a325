/**
 * The demo's model: an agent whose steps are written down here. It works as agents do, on real files with the real
 * tools; what it is sent decides only how it goes back to an earlier result.
 */
import { headerLine, referenceOf } from '../lib/lines/index.ts'
import { calls } from '../rig/reply.ts'
import type { Reply, Script } from '../rig/reply.ts'
import { resultsById } from '../rig/request.ts'
import type { ModelRequest } from '../rig/exchange.ts'

/** The file the agent writes; it exists in the copy only. */
const SCRATCH = 'REVIEW-NOTES.md'

/** The last answer, which identifies a complete run. */
export const LAST_ANSWER = 'The review is complete: layout, public surface and dependencies are in the notes.'

/** A model call: the answer, or what makes it from the request. A step that gives nothing is skipped. */
type Step = Reply | ((request: ModelRequest) => Reply | undefined)

/** A user's request, and the steps until the agent answers. */
interface Round {
  prompt: string
  steps: Step[]
}

/** The agent's way back to an earlier result. */
export interface GoingBack {
  /** The reference it activated. */
  id: string
  tool: string
  /** True if the result's own lines were in the next request again, after they had been absent. */
  returned: boolean
}

/** The agent, ready for one run. */
export interface Agent {
  /** The user's messages, in order. */
  prompts: string[]
  script: Script
  /** The user prompt that is being worked on, from 1. */
  readonly round: number
  /** The last model call's request, in a few words. */
  readonly doing: string
  /** Set once the agent went back to an earlier result. */
  readonly back: GoingBack | undefined
}

/** An agent for a repository. `read` are files worth reading; with `folders` they decide what it looks at. */
export function createAgent(read: readonly string[], folders: readonly string[]): Agent {
  const rounds = plan(read, folders)
  const shown = new Map<string, string>()
  const state = { round: 0, step: 0, doing: '', back: undefined as GoingBack | undefined, expect: [] as string[] }

  const script = (request: ModelRequest): Reply => {
    observe(request)
    // Counted, not read off the request: notices of a context manager may look like a user's messages there.
    if (state.round === 0 || state.step === rounds[state.round - 1]?.steps.length) {
      state.round += 1
      state.step = 0
    }
    const round = rounds[state.round - 1]
    if (round === undefined) throw new Error('a model call after the last answer of the plan')
    checkPrompt(request, round.prompt)
    for (;;) {
      const step = round.steps[state.step]
      if (step === undefined) throw new Error(`the plan for "${round.prompt}" ends without an answer`)
      state.step += 1
      const reply = typeof step === 'function' ? step(request) : step
      if (reply === undefined) continue
      state.doing = summary(reply)
      return reply
    }
  }

  /** Keeps each result as it was first shown, and looks whether an activated one has come back. */
  const observe = (request: ModelRequest): void => {
    for (const [id, text] of resultsById(request)) if (!shown.has(id)) shown.set(id, text)
    if (state.expect.length === 0 || state.back === undefined) return
    state.back.returned = state.expect.every((line) => contains(request, line))
    state.expect = []
  }

  /** Activates the first file that was read and has collapsed since; if nothing collapsed, does nothing. */
  const goBack = (request: ModelRequest): Reply | undefined => {
    for (const [callId, text] of resultsById(request)) {
      const reference = referenceOf(text)
      const original = shown.get(callId) ?? ''
      if (reference?.tool !== 'read' || referenceOf(original) !== undefined) continue
      const lines = longestLines(original).filter((line) => !contains(request, line))
      if (lines.length === 0) continue
      state.back = { id: reference.id, tool: reference.tool, returned: false }
      state.expect = lines
      const { id } = reference
      return request.tools.includes('activate') ? calls(['activate', { id }]) : calls(['read', { path: headerLine(id) }])
    }
    return undefined
  }
  for (const round of rounds) round.steps = round.steps.map((step) => (step === GO_BACK ? goBack : step))

  return {
    prompts: rounds.map((round) => round.prompt),
    script,
    get round() {
      return state.round
    },
    get doing() {
      return state.doing
    },
    get back() {
      return state.back
    },
  }
}

/** Stands in the plan for the step that looks at an earlier result again. */
const GO_BACK: Step = () => undefined

const say = (text: string): Reply => ({ text })
const bash = (command: string): Reply => calls(['bash', { command }])
const note = (line: string): Reply => calls(['edit', { path: SCRATCH, edits: [{ oldText: '<!-- end -->', newText: `- ${line}\n<!-- end -->` }] }])

/** Output that an agent asks for without thinking of its size: here at most 32 kB, about 8,000 tokens. */
const large = (command: string): Reply => bash(`{ ${command} ; } 2>/dev/null | head -c 32000`)

function plan(read: readonly string[], folders: readonly string[]): Round[] {
  if (read.length === 0) throw new Error('this repository has no text file of 2 to 24 kB to read')
  const file = (index: number): string => read[index % read.length] as string
  const folder = (index: number): string => folders[index % folders.length] ?? '.'
  const look = (...indexes: number[]): Reply => calls(...indexes.map((index): [string, object] => ['read', { path: file(index) }]))
  const ls = (path: string): Reply => calls(['ls', { path }])
  const grep = (pattern: string): Reply => calls(['grep', { pattern, path: '.', limit: 120 }])
  const every = (pattern: string): string => `find . -type f -name '${pattern}' | LC_ALL=C sort | xargs`
  /** Returns most of an agent's work: small steps on one file. */
  const closer = (index: number): Round => ({
    prompt: `Look closer at ${file(index)}.`,
    steps: [
      calls(['grep', { pattern: '^(pub |export |impl |fn |## )', path: file(index) }]),
      calls(['read', { path: file(index), offset: 20, limit: 60 }]),
      bash(`wc -l ${file(index)} && grep -c '' ${file(index)}`),
      calls(['grep', { pattern: file(index).split('/').at(-1)?.split('.')[0] ?? '', path: '.', limit: 40 }]),
      note(`looked closer at ${file(index)}`),
      bash(`tail -n 5 ${SCRATCH}`),
      say(`${file(index)} does one thing; a note says what.`),
    ],
  })
  return [
    {
      prompt: 'Get an overview of this repository: what is where?',
      steps: [
        ls('.'),
        bash('find . -type f | LC_ALL=C sort | head -n 400'),
        look(0, 1),
        ls(folder(0)),
        say('A workspace with a core, bindings, tests and tools; I have read the two largest files.'),
      ],
    },
    {
      prompt: 'Which functions and types are public?',
      steps: [
        grep('pub (fn|struct|enum|trait) '),
        look(2),
        look(3),
        large(`${every('*.rs')} grep -nE '^\\s*pub '`),
        say('The public items are few for each file and documented.'),
      ],
    },
    closer(2),
    {
      prompt: `Write your findings into ${SCRATCH} as you go. Begin with the layout.`,
      steps: [
        calls(['write', { path: SCRATCH, content: '# Review notes\n\n<!-- end -->\n' }]),
        look(4),
        note(`layout: ${folders.join(', ')}`),
        large(`${every('*.toml')} cat`),
        note('each part has its own manifest'),
        say('The notes have begun.'),
      ],
    },
    closer(4),
    {
      prompt: 'Check the dependencies: what is pinned, and what comes in twice?',
      steps: [
        large('cat Cargo.lock'),
        grep('^version = '),
        look(5),
        large('grep -n \'"version"\' -B1 package-lock.json'),
        note('dependencies: both lock files are complete'),
        say('Versions are pinned in both lock files.'),
      ],
    },
    closer(5),
    {
      prompt: 'How are errors handled?',
      steps: [
        grep('Error|error'),
        look(6),
        large(`${every('*.rs')} grep -nE 'Result<|Err\\(|\\?;'`),
        note('errors carry a code and a sentence'),
        say('Errors are typed and carry a code.'),
      ],
    },
    closer(6),
    {
      prompt: 'Run through the tests and say what they cover.',
      steps: [
        ls(folder(1)),
        look(7),
        large(`${every('*.rs')} grep -n -A6 '#\\[test\\]\\|#\\[rstest\\]'`),
        large(`${every('*.ts')} cat -n`),
        note('tests: rules by tables, processes for real'),
        say('Rules are tested by tables, processes for real.'),
      ],
    },
    closer(7),
    {
      prompt: 'Look for anything unfinished.',
      steps: [
        grep('TODO|FIXME|unimplemented!|todo!'),
        look(8),
        look(9),
        large(`${every('*.md')} cat`),
        note('nothing unfinished was found'),
        say('Nothing unfinished.'),
      ],
    },
    {
      prompt: 'Go back to the first file that you read: does what you said about it still hold?',
      steps: [GO_BACK, note('the first file was looked at again'), bash(`cat ${SCRATCH}`), say('Yes, it holds.')],
    },
    closer(8),
    {
      prompt: 'Finish the notes and sum up.',
      steps: [ls('.'), bash(`wc -l ${SCRATCH}`), note('summed up'), bash(`cat ${SCRATCH}`), say(LAST_ANSWER)],
    },
  ]
}

/** The plan and the conversation must not drift apart, or the figures would be of something else. */
function checkPrompt(request: ModelRequest, prompt: string): void {
  if (request.messages.some((message) => message.role === 'user' && message.text.includes(prompt))) return
  throw new Error(`the plan is at "${prompt}", but the request does not contain that user prompt`)
}

/** True if any message of the request has this line. */
function contains(request: ModelRequest, line: string): boolean {
  return request.messages.some((message) => message.text.includes(line))
}

/** A few lines that identify a text; not its first ones, where a context manager puts its header. */
function longestLines(text: string): string[] {
  return [...new Set(text.split('\n').slice(2))].sort((left, right) => right.length - left.length).slice(0, 5)
}

function summary(reply: Reply): string {
  const made = (reply.parts ?? []).flatMap((part) => (typeof part === 'object' && 'call' in part ? [part.call] : []))
  if (made.length === 0) return 'answer'
  return made
    .map((entry) => {
      const args = entry.args as Record<string, string>
      return `${entry.name} ${args['path'] ?? args['command'] ?? args['pattern'] ?? args['id'] ?? ''}`.trim()
    })
    .join(', ')
}
