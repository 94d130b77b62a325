// Runs a bench in TypeScript as it is: node benches/ts.mjs benches/store.ts [arguments]
import { resolve } from 'node:path'
import { runnerImport } from 'vite'

await runnerImport(resolve(process.argv[2]), { logLevel: 'error', server: { watch: null } })
