#!/usr/bin/env node
/** What the package installs as its program: says in one sentence why there is none where the native part is missing. */
try {
  await import('./main.ts')
} catch (error) {
  process.stderr.write(`pi-context-manager: ${(error as Error).message ?? String(error)}\n`)
  process.exitCode = 1
}
