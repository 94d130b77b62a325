#!/usr/bin/env node
/** The program that the package installs: if the native part is missing, it explains why in one sentence. */
try {
  await import('./main.ts')
} catch (error) {
  process.stderr.write(`pi-context-manager: ${(error as Error).message ?? String(error)}\n`)
  process.exitCode = 2
}
