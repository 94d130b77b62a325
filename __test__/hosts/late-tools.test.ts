/** A host that fetches the tools of a context after its first step, as one does with a child's, is not warned. */
import { afterEach, expect, test } from 'vitest'
import { contextFor } from '../../lib/hosts/ai-sdk.ts'
import { cleanUp, onCleanUp } from '../../rig/cleanup.ts'

afterEach(cleanUp)

type Step = Parameters<ReturnType<typeof contextFor>['prepareStep']>[0]

const step = (count: number) => ({ messages: Array.from({ length: count }, (_, n) => ({ role: 'user', content: `prompt ${n}` })) }) as unknown as Step

test.each([
  ['fetched after the first step: no warning', true, 0],
  ['never fetched: one warning, at the second step', false, 1],
])('%s', async (_what, isFetched, count) => {
  const warnings: string[] = []
  const parent = contextFor({ sessionId: 'parent', store: { kind: 'memory' }, onWarning: (text) => warnings.push(text) })
  const child = parent.child({ sessionId: 'child' })
  onCleanUp(() => child.close())
  await child.prepareStep(step(1))
  expect(warnings).toEqual([])
  if (isFetched) expect(Object.keys(child.tools)).toEqual(['activate'])
  for (const length of [2, 3]) await child.prepareStep(step(length))
  expect(warnings).toHaveLength(count)
})
