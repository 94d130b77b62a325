/** The `.env` file of Gemini CLI: which one it reads, what counts of it, and what that changes in its start by `run`. */
import { afterEach, describe, expect, test } from 'vitest'
import { variablesIn } from '../../lib/gateway/gemini-env.ts'
import type { Launch, Program } from '../../lib/gateway/program-settings.ts'
import { cleanUp } from '../../rig/cleanup.ts'
import { gateway, launch as launchOf } from './launched.ts'

afterEach(cleanUp)

const TRUSTED = { GEMINI_CLI_TRUST_WORKSPACE: 'true' }

/** A key that must not be seen anywhere. */
const KEY = 'AIzaHidden-000'

/** The start of Gemini CLI where these files and variables are. */
function launch(files: Record<string, string>, env: Record<string, string> = TRUSTED, args: string[] = []): Program & Launch {
  const launched = launchOf(['gemini', ...args].join(' '), files, { GEMINI_CLI_SYSTEM_SETTINGS_PATH: 'HOME/etc.json', ...env })
  expect(JSON.stringify(launched)).not.toContain(KEY)
  return launched
}

const hasLogin = ({ notes, env }: Launch): boolean => {
  const isGiven = env['GOOGLE_GEMINI_BASE_URL'] !== undefined
  expect(notes.join().includes('not logged in')).toBe(!isGiven)
  return isGiven
}

const key = `GEMINI_API_KEY=${KEY}\n`

test.each(['a/b/.gemini/.env', 'a/b/.env', 'a/.gemini/.env', 'a/.env', '.gemini/.env', '.env'])('a key in %s is a login', (file) => {
  expect(hasLogin(launch({ [file]: key }))).toBe(true)
})

test('without a file there is none', () => {
  expect(hasLogin(launch({}))).toBe(false)
})

test("the home of the CLI's own variable comes last", () => {
  const env = { ...TRUSTED, GEMINI_CLI_HOME: 'HOME/x' }
  expect(hasLogin(launch({ 'x/.gemini/.env': key }, env))).toBe(true)
  expect(hasLogin(launch({ 'x/.env': key }, env))).toBe(true)
})

test.each([
  ['a/b/.gemini/.env', 'a/b/.env'],
  ['a/b/.env', 'a/.gemini/.env'],
  ['a/.env', '.gemini/.env'],
  ['.gemini/.env', '.env'],
])('only the first file counts: %s before %s', (first, second) => {
  expect(hasLogin(launch({ [first]: 'OTHER=1\n', [second]: key }))).toBe(false)
  expect(hasLogin(launch({ [first]: key, [second]: 'OTHER=1\n' }))).toBe(true)
})

test.each([
  ['GEMINI_API_KEY', KEY, ''],
  ['GOOGLE_GENAI_USE_VERTEXAI', 'true', 'false'],
  ['GOOGLE_GENAI_USE_GCA', 'true', ''],
  ['GOOGLE_GEMINI_BASE_URL', 'https://corp.example', ''],
])('%s: the environment wins over the file, also when it is empty', (name, value, own) => {
  const files = { 'a/b/.env': `${name}=${value}` }
  expect(hasLogin(launch(files))).toBe(true)
  expect(hasLogin(launch(files, { ...TRUSTED, [name]: own }))).toBe(false)
})

test('addresses in the file lead through the gateway', () => {
  const text =
    'GOOGLE_GEMINI_BASE_URL="https://corp.example"\nexport CODE_ASSIST_ENDPOINT=https://assist.example # ours\nGOOGLE_CLOUD_LOCATION=europe-west4\nGOOGLE_CLOUD_PROJECT=p\n'
  const found = launch({ 'a/b/.gemini/.env': text })
  expect(found.upstreams).toEqual({ gemini: 'https://corp.example' })
  expect(found.env).toMatchObject({
    GOOGLE_GEMINI_BASE_URL: `${gateway.url}/gemini`,
    CODE_ASSIST_ENDPOINT: `${gateway.url}/https://assist.example`,
    GOOGLE_VERTEX_BASE_URL: `${gateway.url}/https://europe-west4-aiplatform.googleapis.com`,
  })
})

describe('a folder that is not trusted', () => {
  test("its .gemini/.env is not read, and neither is the home's", () => {
    for (const file of ['a/b/.gemini/.env', '.gemini/.env']) expect(hasLogin(launch({ [file]: key }, {}))).toBe(false)
  })

  test.each([
    [key, true],
    ['GOOGLE_GENAI_USE_VERTEXAI=true', false],
    ['GOOGLE_GEMINI_BASE_URL=https://corp.example', false],
  ])('of its .env only keys and projects count: %j', (text, expected) => {
    expect(hasLogin(launch({ 'a/b/.env': text }, {}))).toBe(expected)
  })

  test.each<[how: string, files: Record<string, string>, env: Record<string, string>, expected: boolean]>([
    ['the folder itself', { '.gemini/trustedFolders.json': '{"HOME/a/b": "TRUST_FOLDER"}' }, {}, true],
    ['a folder above it', { '.gemini/trustedFolders.json': '{"HOME/a": "TRUST_FOLDER"}' }, {}, true],
    ['a sibling and its parent', { '.gemini/trustedFolders.json': '{"HOME/a/c": "TRUST_PARENT"}' }, {}, true],
    ['another folder', { '.gemini/trustedFolders.json': '{"HOME/a/bc": "TRUST_FOLDER"}' }, {}, false],
    ['a nearer rule against it', { '.gemini/trustedFolders.json': '{"HOME/a": "TRUST_FOLDER", "HOME/a/b": "DO_NOT_TRUST"}' }, {}, false],
    ['another file', { 't.json': '{"HOME/a": "TRUST_FOLDER"}' }, { GEMINI_CLI_TRUSTED_FOLDERS_PATH: 'HOME/t.json' }, true],
    ["the user's settings", { '.gemini/settings.json': '{"security": {"folderTrust": {"enabled": false}}}' }, {}, true],
    ["the project's settings", { 'a/b/.gemini/settings.json': '{"security": {"folderTrust": {"enabled": false}}}' }, {}, false],
    ['the variable of restricted mode', { 't.json': '{"HOME": "TRUST_FOLDER"}' }, { ...TRUSTED, GEMINI_RESTRICTED_MODE: 'true' }, false],
  ])('trust by %s', (_, files, env, expected) => {
    expect(hasLogin(launch({ ...files, 'a/b/.gemini/.env': key }, env))).toBe(expected)
  })
})

test.each<[how: string, files: Record<string, string>, args: string[]]>([
  ['--ignore-env', {}, ['--ignore-env']],
  ['a setting', { '.gemini/settings.json': '{"advanced": {"ignoreLocalEnv": true}}' }, []],
])('with %s, only .env of the home and files in .gemini are read', (_, files, args) => {
  expect(hasLogin(launch({ ...files, 'a/b/.env': key }, TRUSTED, args))).toBe(false)
  expect(hasLogin(launch({ ...files, '.env': key }, TRUSTED, args))).toBe(true)
  expect(hasLogin(launch({ ...files, 'a/.gemini/.env': key }, TRUSTED, args))).toBe(true)
})

test('names that the settings exclude count only in .gemini', () => {
  const files = { '.gemini/settings.json': '{"advanced": {"excludedEnvVars": ["GEMINI_API_KEY"]}}' }
  expect(hasLogin(launch({ ...files, 'a/b/.env': key }))).toBe(false)
  expect(hasLogin(launch({ ...files, 'a/b/.gemini/.env': key }))).toBe(true)
})

test('a file that can not be read is named, and hides later ones as in the CLI', () => {
  const found = launch({ 'a/b/.env/x': '', '.env': key })
  expect(hasLogin(found)).toBe(false)
  expect(found.notes[0]).toMatch(/a\/b\/\.env were not taken into account: it can't be read \(EISDIR\)$/)
})

test.each<[text: string, expected: Record<string, string>]>([
  ['A=1\nB = 2 # two\nexport C=3\r\nD: 4\n', { A: '1', B: '2', C: '3', D: '4' }],
  ['A="x # y"\nB=\'x # y\'\nC=`x "y"`\nD="a\\nb"\nE=\'a\\nb\'', { A: 'x # y', B: 'x # y', C: 'x "y"', D: 'a\nb', E: 'a\\nb' }],
  ['A="one\ntwo"\n# B=1\nC=\n', { A: 'one\ntwo', C: '' }],
  ['not a variable\n=1\nA=1\nA=2\n', { A: '2' }],
])('reads %j', (text, expected) => {
  expect(Object.fromEntries(variablesIn(text))).toEqual(expected)
})
