// Watches the 50,000 files of crates/watch/benches/watch.rs with chokidar, and prints the milliseconds until it was
// ready and the megabytes of memory that it took.
import { join } from 'node:path'
import { watch } from 'chokidar'

const paths = Array.from({ length: 50_000 }, (_, n) => join(process.argv[2], `d${Math.floor(n / 20)}`, `file_${n}.txt`))
const before = process.memoryUsage().rss
const start = performance.now()
const watcher = watch(paths, { ignoreInitial: true })
await new Promise((resolve) => watcher.once('ready', resolve))
console.log(performance.now() - start, (process.memoryUsage().rss - before) / 1e6)
process.exit(0)
