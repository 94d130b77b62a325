import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { armNamed, run } from '../../lab/experiments/arm.ts'
import type { Outcome } from '../../lab/experiments/arm.ts'
import { reportOf } from '../../lab/experiments/report.ts'
import { TASKS, tasksNamed } from '../../lab/experiments/tasks.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { temporaryFolder } from './support.ts'

afterEach(cleanUp)

const SCRIPTED = { model: undefined, minutes: 3 }

describe('tasks', () => {
  test.each(TASKS.map((make) => [make(1).name, make] as const))('%s: the same seed gives the same task, another one another', (_, make) => {
    const stable = (seed: number) => JSON.stringify(make(seed))
    expect(stable(3)).toBe(stable(3))
    expect(stable(3)).not.toBe(stable(4))
  })

  test('no task is solved before any work', () => {
    for (const task of tasksNamed(undefined, 5)) {
      const folder = temporaryFolder()
      for (const [path, text] of Object.entries(task.files)) {
        if (!path.includes('/')) writeFileSync(join(folder, path), text)
      }
      let judged: string | undefined
      try {
        judged = task.judge(folder)
      } catch {
        judged = 'files are missing'
      }
      expect(judged, task.name).toBeDefined()
    }
  })

  test('an unknown task is told', () => {
    expect(() => tasksNamed(['magic'], 1)).toThrow('unknown task "magic"')
  })
})

describe('arms', () => {
  test.each([
    ['plain', undefined],
    ['managed', {}],
    ['thinking=keep', { thinking: 'keep' }],
    ['calls=20+prose=keep', { calls: 20, prose: 'keep' }],
  ])('%s', (name, settings) => {
    expect(armNamed(name)).toEqual({ name, settings })
  })

  test.each(['', 'other', 'thinking', 'thinking=', 'thinking=0', 'calls=1=2', 'perTurn=3', 'calls=20+'])('%j is none', (name) => {
    expect(() => armNamed(name)).toThrow(`unknown arm "${name}"`)
  })
})

test('an arm with settings has them, whatever the settings file says', async () => {
  const [task] = tasksNamed(['series'], 1)
  const [soon, kept] = [
    await run(task!, armNamed('thinking=1+calls=1+prose=1'), SCRIPTED),
    await run(task!, armNamed('thinking=keep+calls=keep+prose=keep'), SCRIPTED),
  ]
  expect([soon.failure, kept.failure]).toEqual([undefined, undefined])
  expect(soon.promptTokens).not.toBe(kept.promptTokens)
  expect([soon.arm, kept.arm]).toEqual(['thinking=1+calls=1+prose=1', 'thinking=keep+calls=keep+prose=keep'])
})

test('both ways solve a task with the real Pi, and the report has them side by side', async () => {
  const [task] = tasksNamed(['search'], 2)
  const plain = await run(task!, armNamed('plain'), SCRIPTED)
  const managed = await run(task!, armNamed('managed'), SCRIPTED)
  for (const outcome of [plain, managed]) expect(outcome).toMatchObject({ failure: undefined, calls: 7, tools: { bash: 3, write: 2 } })
  // A log of 50 KB stays in the plain context; the context manager shows an excerpt of it.
  expect(managed.promptTokens).toBeLessThan(plain.promptTokens / 2)
  const report = reportOf([{ task: task!, seed: 2, outcomes: [plain, managed] }], {
    model: 'm',
    pi: '1',
    seeds: [2],
  })
  expect(report).toContain('| plain | 1 of 1 | 7 |')
  expect(report).toContain('| managed | 1 of 1 | 7 |')
  expect(report).toContain('1. Exactly one request in gateway.log failed.')
})

test('a run that does not do its task is reported with the reason', async () => {
  const [task] = tasksNamed(['search'], 2)
  const lazy = { ...task!, script: [[{ text: 'I would rather not.' }], [{ text: 'Nor this.' }]] }
  const outcome: Outcome = await run(lazy, armNamed('plain'), SCRIPTED)
  expect(outcome.failure).toBe('culprit.txt is missing')
  const report = reportOf([{ task: lazy, seed: 2, outcomes: [outcome] }], {
    model: 'm',
    pi: '1',
    seeds: [2],
  })
  expect(report).toContain('- search, seed 2, plain: culprit.txt is missing')
  expect(report).toContain('| plain | 0 of 1 |')
})

test('the stored report is that of the scripted model', () => {
  const report = readFileSync(new URL('../../docs/experiments/scripted-model.md', import.meta.url), 'utf8')
  expect(report).toContain('# Experiment: scripted model')
  for (const task of tasksNamed(undefined, 1)) for (const prompt of task.prompts) expect(report).toContain(prompt)
})
