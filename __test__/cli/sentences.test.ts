/** The answer to a mistake: one sentence that says what was given and what to do, without a code of the system. */
import { copyFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ContextManager } from '../../lib/index.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { cli, fixture, temporaryFolder } from '../replay/support.ts'

afterEach(cleanUp)

/** Files of models that are refused, each with the end of its sentence. */
const MODELS: [facts: unknown, sentence: string][] = [
  [[], ' is not a JSON object of models'],
  [{ m: 3 }, ': "m" needs an object of facts about the model'],
  [{ m: { input: '3' } }, ': "input" of "m" needs a number from 0 to 1,000,000,000,000, not "3"'],
  [{ m: { input: 3, cacheRead: -1 } }, ': "cacheRead" of "m" needs a number from 0 to 1,000,000,000,000, not -1'],
  [{ m: { inputs: 3 } }, ': "m" has no fact "inputs"; did you mean "input"?'],
  [{ m: { input: 3, tiers: [{ factor: 2 }] } }, ': "tiers" of "m" needs a list of {"inputTokensAbove": TOKENS, "factor": TIMES}'],
]

test('every mistake has its sentence', async () => {
  const folder = temporaryFolder()
  const [store, junk, nowhere] = [join(folder, 'context.db'), join(folder, 'junk.txt'), join(folder, 'no', 'x')]
  const [circle, long] = [join(folder, 'circle.db'), join(folder, 'a'.repeat(300))]
  const session = join(folder, 'session.jsonl')
  writeFileSync(junk, 'junk\n')
  copyFileSync(fixture('pi-version-1.jsonl'), session)
  symlinkSync(circle, circle)
  const manager = await ContextManager.open({ sessionId: 'first', cwd: folder, store: { kind: 'sqlite', path: store }, watch: false })
  await manager.appendTurn({ role: 'user', content: 'mend it' })
  await manager.close()
  const cases: [args: string[], code: number, sentence: string][] = [
    [['sesions'], 2, 'unknown command "sesions"; did you mean "sessions"?'],
    [['sessions', '--stor', store], 2, 'sessions has no option --stor; did you mean "--store"?'],
    [['gateway', '--port', '1'], 2, 'gateway has no option --port; did you mean "--listen"?'],
    [['prune', '--preview'], 2, 'prune has no option --preview; did you mean "--dry-run"?'],
    [['sessions', '--port', '1'], 2, 'sessions has no option --port; "pi-context-manager sessions --help" lists them'],
    [['inspect', '--store', store, 'first', 'second'], 2, 'inspect takes one session; 2 were given'],
    [['sessions', 'extra'], 2, `sessions takes options only, not 'extra'; "pi-context-manager sessions --help" explains the command`],
    [['limits', '--older-than'], 2, '--older-than needs a value; "pi-context-manager limits --help" explains the command'],
    [
      ['prune', '--older-than', '-5d'],
      2,
      '--older-than needs a value; one that begins with "-" is written as --older-than=VALUE; "pi-context-manager prune --help" explains the command',
    ],
    [['sessions', '--store', nowhere], 2, `there is no store at ${nowhere}; check the path`],
    [['sessions', '--store', join(junk, 'x')], 2, `there is no store at ${join(junk, 'x')}; check the path`],
    [['sessions', '--store', circle], 2, `${circle} can't be opened: too many symbolic links encountered`],
    [['log', '--store', long, 'x'], 2, `${long} can't be opened: name too long`],
    [['sessions', '--store', junk], 2, 'the store is damaged: the file is not a context store, or its first page is damaged'],
    [['show', '--store', store, 'absent'], 1, `${store} has no object absent, nor a file ${join(process.cwd(), 'absent')}; "search" shows IDs and paths`],
    ...(['show', 'log'] as const).map((name): (typeof cases)[number] => [
      [name, '--store', store, 'AF3'],
      2,
      'AF3 is too short for a name; give at least four of its digits',
    ]),
    [['forget', '--store', store, '--id', 'af3'], 2, 'af3 is too short for a name; give at least four of its digits'],
    [['show', '--store', store, ''], 2, 'show needs one ID or path; an empty one was given'],
    [['forget', '--store', store, '--id', ''], 2, 'name an object by its ID or path; an empty name was given'],
    [['why', folder], 2, `${folder} is a folder; name one session file in it`],
    // The same for all who read it, whatever rights they have.
    ...(process.platform === 'linux' ? [[['why', '/proc/self/mem'], 2, "/proc/self/mem can't be read: i/o error"] as (typeof cases)[number]] : []),
    [
      ['gateway', '--listen', '0', '--store', join(junk, 'x')],
      2,
      `the gateway's secret can't be kept in ${join(junk, 'gateway.secret')}, beside the store: not a directory; name another store with --store`,
    ],
    [['search', '--store', store, '--session', 'absent', 'x'], 1, `${store} has no session absent; "sessions" lists them`],
    [['forget', '--store', store, '--path', nowhere], 1, `${store} has no file ${nowhere}; "search" shows paths`],
    [['forget', '--store', store, '--text-file', nowhere], 2, `${nowhere} can't be read: no such file or directory`],
    [['gateway', '--store', store, '--models', nowhere], 2, `${nowhere} can't be read: no such file or directory`],
    ...MODELS.map(([facts, sentence], at): (typeof cases)[number] => {
      const file = join(folder, `models-${at}.json`)
      writeFileSync(file, JSON.stringify(facts))
      return [['gateway', '--store', store, '--models', file], 2, `${file}${sentence}`]
    }),
    ...(['anthropic', 'openai', 'gemini'] as const).map((name): (typeof cases)[number] => [
      ['gateway', '--store', store, `--${name}`, 'localhost:45037'],
      2,
      `--${name} is "localhost:45037", and an address begins with http:// or https://; write http://localhost:45037`,
    ]),
    [['gateway', '--store', store, '--listen', '0.0.0.0:1'], 2, 'listening on 0.0.0.0 lets others use the gateway; give it a secret token (--token)'],
    [['export', '--store', store], 2, 'export needs the name of one file to write, or "-" for standard output; none was given'],
    [['export', '--store', store, nowhere], 2, `${nowhere} can't be written: the folder ${join(folder, 'no')} does not exist`],
    [['export', '--store', store, junk], 2, `${junk} already exists; use --force to replace it`],
    [['export', '--store', store, '--force', store], 2, `${store} exists and is not an export, so it is not replaced; name another file`],
    [['export', '--store', store, '--force', junk], 2, `${junk} exists and is not an export, so it is not replaced; name another file`],
    [['inspect', '--store', store, '--html', store], 2, `${store} exists and is not a page, so it is not replaced; name another file`],
    [['replay', session, '--quiet', '--html', session], 2, `${session} exists and is not a page, so it is not replaced; name another file`],
    [['replay', session, '--quiet', '--save-baseline', store], 2, `${store} exists and is not a baseline, so it is not replaced; name another file`],
    [['inspect', '--store', store, '--html', nowhere], 2, `${nowhere} can't be written: no such file or directory`],
    [['replay', fixture('pi-version-1.jsonl'), '--quiet', '--html', nowhere], 2, `${nowhere} can't be written: no such file or directory`],
    [
      ['import', '--store', nowhere, junk],
      2,
      'line 1 of the export file: this is not an export of pi-context-manager; nothing was imported, get a complete copy of the file',
    ],
  ]
  for (const [args, code, sentence] of cases) {
    expect([args, await cli(args)]).toEqual([args, { code, stdout: '', stderr: `pi-context-manager: ${sentence}\n` }])
  }
})
