// Runs the TypeScript of this directory as it is: node --expose-gc benches/storage/run.mjs
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'

await runnerImport(fileURLToPath(new URL('./figures.ts', import.meta.url)), { logLevel: 'error', server: { watch: null } })
