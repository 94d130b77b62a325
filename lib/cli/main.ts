#!/usr/bin/env node
/** The program `pi-context-manager`. */
import { CACHES } from '../replay/cache.ts'
import { openRecording, sessionFiles } from '../replay/open.ts'
import { POLICY_NAMES } from '../replay/policies/policy.ts'
import { ratioPrices } from '../replay/prices.ts'
import { replaySession } from '../replay/run.ts'
import { Sums } from '../replay/summary.ts'
import { survey } from '../replay/survey.ts'
import { sessionTable, summaryTable } from '../replay/table.ts'

const [cache, read, write, ...paths] = process.argv.slice(2) as [string, string, string, ...string[]]
const sums = new Sums()
for (const path of paths) {
  for await (const file of sessionFiles(path)) {
    const recording = await openRecording(file)
    const found = await survey(recording, (p) => console.error(p))
    const t = performance.now()
    const report = await replaySession(recording, found, {
      policies: POLICY_NAMES,
      cache: CACHES[cache as 'plain'],
      ...(read === '-' ? {} : { prices: ratioPrices(Number(read), Number(write)) }),
      window: 200_000,
      manager: { perTurn: 5, turnsBack: 3, onlyAtUserTurn: false, overheadTokens: 600 },
    })
    sums.add(report)
    console.log(sessionTable(report), Math.round(performance.now() - t), 'ms')
  }
}
console.log(summaryTable(sums.summary()))
