/**
 * Who may import whom. `npm run check` and CI hold these rules; ARCHITECTURE.md draws them.
 *
 * Imports of types count as all others. A module's own tests may open any of its files; everything else goes through doors.
 */

/** The folders of `lib`, each with those that it may import. A folder that is not listed here is an error. */
const ARROWS = {
  core: [],
  native: ['core'],
  lines: ['core'],
  models: ['lines'],
  tools: ['core'],
  projection: ['core', 'native', 'lines', 'models', 'tools'],
  session: ['core', 'native', 'projection'],
  ui: ['core', 'lines'],
  recordings: ['core', 'lines', 'models', 'tools'],
  hosts: ['core', 'models', 'tools', 'projection', 'session'],
  gateway: ['core', 'native', 'lines', 'models', 'tools', 'projection', 'session', 'ui'],
  mcp: ['core', 'native', 'lines', 'ui'],
  usage: ['core', 'models', 'recordings', 'ui', 'gateway'],
  replay: ['core', 'lines', 'models', 'tools', 'projection', 'session', 'recordings', 'ui'],
  inspect: ['core', 'native', 'models', 'session', 'projection', 'recordings', 'ui'],
  enable: ['core', 'ui'],
  cli: ['core', 'native', 'session', 'models', 'tools', 'ui', 'recordings', 'gateway', 'mcp', 'usage', 'replay', 'inspect', 'enable'],
  storage: [],
}

/** Entries of the package, which are doors as well. */
const ENTRIES = '^lib/(index|projection/harness|storage/index|hosts/[^/]+)\\.ts$'

const folders = Object.keys(ARROWS).join('|')

export default {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'A file must not import itself through others.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'doors',
      comment: 'Import another folder of lib through its index.ts.',
      severity: 'error',
      from: { pathNot: '^__test__/', path: '^(?:lib/([^/]+)|[^/]+)/' },
      to: { path: `^lib/(?:${folders})/`, pathNot: ['^lib/[^/]+/index\\.ts$', '^lib/$1/', ENTRIES] },
    },
    ...Object.entries(ARROWS).map(([folder, allowed]) => ({
      name: `lib-${folder}`,
      comment: `lib/${folder} may import ${allowed.length === 0 ? 'no other folder of lib' : allowed.join(', ')}.`,
      severity: 'error',
      from: { path: `^lib/${folder}/` },
      to: { path: '^lib/', pathNot: `^lib/(?:${[folder, ...allowed].join('|')})/` },
    })),
    {
      name: 'known-folders',
      comment: 'lib has index.ts and the folders that these rules list.',
      severity: 'error',
      from: {},
      to: { path: '^lib/', pathNot: `^lib/(?:index\\.ts$|(?:${folders})/)` },
    },
    {
      name: 'extensions',
      comment: 'The extension needs our lines, the projection, the models and the words of screens.',
      severity: 'error',
      from: { path: '^extensions/' },
      to: { path: '^lib/', pathNot: '^lib/(?:index\\.ts$|(?:core|lines|models|projection|ui)/)' },
    },
    {
      name: 'product',
      comment: 'What is published imports nothing that evaluates or tests it.',
      severity: 'error',
      from: { path: '^(?:lib|extensions|examples)/' },
      to: { path: '^(?:lab|rig|demo|benches|scripts|__test__)/' },
    },
    {
      name: 'lab',
      comment: 'Only its tests import the lab.',
      severity: 'error',
      from: { pathNot: '^(?:lab|__test__)/' },
      to: { path: '^lab/' },
    },
    {
      name: 'rig',
      comment: 'Tests, demo, benches and the lab share the rig.',
      severity: 'error',
      from: { pathNot: '^(?:rig|__test__|demo|benches|lab|pi-runtime)/' },
      to: { path: '^rig/' },
    },
    {
      name: 'unresolved',
      comment: 'Each relative import names a file.',
      severity: 'error',
      from: { pathNot: '^(?:lab|__test__)/' },
      to: { path: '^\\.', couldNotResolve: true },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(?:dist|target)/|node_modules' },
    includeOnly: '^(?:lib|extensions|examples|rig|lab|demo|benches|pi-runtime|index\\.d\\.ts)',
    moduleSystems: ['es6'],
  },
}
