#!/usr/bin/env node
/** The program that the package installs: if the native part is missing, it explains why in one sentence. */
try {
  await import('./main.ts')
} catch (error) {
  const { message = String(error), code } = error as NodeJS.ErrnoException
  // The program's files are opened while it starts.
  const advice = code === 'EMFILE' || code === 'ENFILE' ? '; allow more of them, for instance with "ulimit -n 1024"' : ''
  process.stderr.write(`pi-context-manager: ${message}${advice}\n`)
  process.exitCode = 2
}
