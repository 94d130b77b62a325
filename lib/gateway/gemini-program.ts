/**
 * Gemini CLI: with a key it asks Gemini's API, with a login at Google Code Assist, and with a project Vertex. Each has a variable
 * for its address. The CLI's own settings say which of them it takes; without any, its environment does, and its `.env` file.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '../core/index.ts'
import type { Environment, Fields } from '../core/index.ts'
import { baseUrlIn } from './base-url.ts'
import { withEnvFile } from './gemini-env.ts'
import { fieldsOf, SettingsFiles } from './program-settings.ts'
import type { Place, Program } from './program-settings.ts'
import { SERVER_NAME } from './recall-tool.ts'

/** The variable by which Gemini CLI finds settings that override a user's. */
const SETTINGS = 'GEMINI_CLI_SYSTEM_SETTINGS_PATH'

const CODE_ASSIST = 'https://cloudcode-pa.googleapis.com'

/** Gemini CLI, whichever way it is logged in. */
export function gemini(args: readonly string[], place: Place): Program {
  const read = new SettingsFiles()
  const home = place.env['GEMINI_CLI_HOME'] || place.env['HOME'] || homedir()
  // The system's own settings stay in force.
  const own = read.json(place.env[SETTINGS] || '/etc/gemini-cli/settings.json')
  const [project, user] = [place.cwd, home].map((folder) => read.json(join(folder, '.gemini', 'settings.json'))) as [Fields, Fields]
  const env = withEnvFile(place, { args, trusted: [user, own], project, home }, read)
  const [base, assist, ownVertex] = ['GOOGLE_GEMINI_BASE_URL', 'CODE_ASSIST_ENDPOINT', 'GOOGLE_VERTEX_BASE_URL'].map((name) => baseUrlIn(name, env[name]))
  return {
    host: 'gemini-cli',
    upstreams: base === undefined ? {} : { gemini: base },
    launch({ url, mcpUrl, secret }, folder) {
      const server = { httpUrl: mcpUrl, headers: { Authorization: `Bearer ${secret}` }, trust: true }
      const settings = { ...own, mcpServers: { ...fieldsOf(own['mcpServers']), [SERVER_NAME]: server } }
      const login = loginOf([own, project, user], env)
      return {
        args: [...args],
        env: {
          ...(login === 'given' ? { GOOGLE_GEMINI_BASE_URL: `${url}/gemini` } : {}),
          CODE_ASSIST_ENDPOINT: `${url}/${assist ?? CODE_ASSIST}`,
          GOOGLE_VERTEX_BASE_URL: `${url}/${ownVertex ?? vertex(env)}`,
          [SETTINGS]: join(folder, 'settings.json'),
        },
        files: { 'settings.json': JSON.stringify(settings) },
        notes: [
          ...read.notes,
          ...(login === 'none'
            ? ['Gemini CLI is not logged in yet. A login with Google goes through the gateway at once; if you enter a key instead, start it again afterwards']
            : []),
        ],
      }
    },
  }
}

/**
 * How the CLI finds its login: one is chosen or given by a variable, it is the machine's own, or there is none. With the last two the
 * address of Gemini's API would count as a login itself: a new user who is to log in with Google would not be asked, and
 * the machine's own would not be taken.
 */
function loginOf(settings: readonly Fields[], env: Environment): 'given' | 'machine' | 'none' {
  const isSet = (name: string): boolean => (env[name] ?? '') !== ''
  // As in the CLI: any other value than this is as none.
  const isTrue = (name: string): boolean => env[name] === 'true'
  const isChosen = settings.some((one) => textOf(fieldsOf(fieldsOf(one['security'])['auth'])['selectedType']) !== '')
  const isGiven = ['GEMINI_API_KEY', 'GOOGLE_GEMINI_BASE_URL'].some(isSet) || ['GOOGLE_GENAI_USE_GCA', 'GOOGLE_GENAI_USE_VERTEXAI'].some(isTrue)
  if (isChosen || isGiven) return 'given'
  return ['CLOUD_SHELL', 'GEMINI_CLI_USE_COMPUTE_ADC'].some(isTrue) ? 'machine' : 'none'
}

/** The address of Vertex that the CLI would take by itself: a key has no place, and two regions have addresses of their own. */
function vertex(env: Environment): string {
  const place = env['GOOGLE_CLOUD_LOCATION'] ?? ''
  if (place === 'us' || place === 'eu') return `https://aiplatform.${place}.rep.googleapis.com`
  const isPlain = place === '' || place === 'global' || ((env['GOOGLE_CLOUD_PROJECT'] ?? '') === '' && (env['GOOGLE_API_KEY'] ?? '') !== '')
  return `https://${isPlain ? '' : `${place}-`}aiplatform.googleapis.com`
}
