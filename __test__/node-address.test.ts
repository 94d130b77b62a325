/** The addresses of XTDB nodes: their shown parts, and the journal of each. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { placeOf } from '../extensions/place.ts'
import { storeOf } from '../lib/cli/store.ts'
import { UsageError } from '../lib/ui/terminal.ts'
import { addressesIn, earlierNodeOf, nodeOf, shownUrl } from '../lib/core/node-address.ts'
import { journalOf } from '../lib/core/place.ts'

const folders: string[] = []

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'pcm-address-'))
  folders.push(path)
  return path
}

afterEach(() => folders.splice(0).forEach((path) => rmSync(path, { recursive: true })))

describe('an address that is shown', () => {
  test.each([
    ['http://host:3000', 'http://host:3000'],
    ['http://me:pw@host:3000/x', 'http://host:3000/x'],
    ['http://me:p@w@host', 'http://host'],
    ['HTTPS://me:pw@[::1]:1', 'HTTPS://[::1]:1'],
    ['https://host/a%40b', 'https://host/a%40b'],
    ['http://me:pw@bücher:3000', 'http://bücher:3000'],
  ])('%s is shown as %s', (url, shown) => expect(shownUrl(url)).toBe(shown))

  const secret = [
    'http://me:hush@host',
    'http://me:hush@hush@host',
    'http://me:hush/hush@host',
    'http://me:hush?hush@host',
    'http://me:hush#hush@host',
    'http://me:hush%40host',
    'http://me:hush',
    'http://me:hush@',
    'http://host:3000?password=hush',
    'http://host/#hush',
    'http://host/path?x=1&token=hush@host',
    'me:hush@host:3000',
    '//me:hush@host',
    'me:hu/hush@host/db',
    'hush@host:3000',
    'http:/me:hush@host',
    'HTTP://me:hush@host',
    'http://me:1,hush@host',
    'http://me:hu hush@host',
    'postgres://me:hush@host',
  ]

  test.each(secret)('nothing secret is shown of %s', (url) => {
    expect(shownUrl(url)).not.toContain('hush')
    // The command line and Pi: a name without it, or an error without it.
    for (const name of [
      () => storeOf(url).name,
      () => placeOf(true, { url }, {}, () => '/default.db').name,
      () => placeOf(true, undefined, { CONTEXT_STORE: 'xtdb', CONTEXT_XTDB_URL: url }, () => '/default.db').name,
    ]) {
      let text: string
      try {
        text = name()
      } catch (error) {
        text = String(error)
      }
      expect(text).not.toContain('hush')
    }
  })

  test.each(['C:/a:b@c', 'C:\\\\me@host', '/home/a:b@c/x.db', './a:b@c', 'x@y.db', '~/s.db', 'a/b@host:3000'])('%s is the path of a file', (path) => {
    expect(storeOf(path, true).options.kind).toBe('sqlite')
  })

  test('the commands read addresses in the environment as Pi does', () => {
    const before = { ...process.env }
    Object.assign(process.env, { CONTEXT_STORE: 'xtdb', CONTEXT_XTDB_URL: ', http://a:3000, http://b:3000' })
    try {
      expect(storeOf(undefined).options).toEqual({ kind: 'xtdb', url: 'http://a:3000', urls: ['http://b:3000'] })
      expect(placeOf(true, undefined, process.env, () => '/default.db').options).toMatchObject({ url: 'http://a:3000', urls: ['http://b:3000'] })
    } finally {
      process.env = before
    }
  })

  test('an address in the environment that is none is refused, and not taken for no address', () => {
    const before = { ...process.env }
    Object.assign(process.env, { CONTEXT_STORE: 'xtdb', CONTEXT_XTDB_URL: 'me:hush@host:3000' })
    try {
      expect(() => storeOf(undefined)).toThrow(UsageError)
      expect(() => storeOf(undefined)).not.toThrow(/hush/)
    } finally {
      process.env = before
    }
  })
})

test('several addresses are divided by blanks and commas, and a comma in a password divides nothing', () => {
  expect(addressesIn(' http://a:1, https://b:2\nhttp://c ')).toEqual(['http://a:1', 'https://b:2', 'http://c'])
  expect(addressesIn('http://me:1,2@a http://b')).toEqual(['http://me:1,2@a', 'http://b'])
  expect(addressesIn('')).toEqual([])
})

describe('the journal of a database', () => {
  const plain = 'http://127.0.0.1:3000'

  test.each([
    'http://127.0.0.1:3000/',
    'http://127.0.0.1:3000/_xtdb',
    'http://127.0.0.1:3000/_xtdb/',
    'http://me:pw@127.0.0.1:3000',
    'http://me:p@w@127.0.0.1:3000//',
    'http://localhost:3000',
    'HTTP://LOCALHOST:3000',
    'http://localhost.:3000',
    'http://[::1]:3000',
    'http://127.0.0.2:3000',
    'http://0x7f000001:3000',
    'http://0.0.0.0:3000',
    'http://[::]:3000',
    'http://[::ffff:127.0.0.1]:3000',
    'http://[::ffff:0.0.0.0]:3000',
  ])('%s has the same', (url) => {
    const place = folder()
    expect(nodeOf(url)).toBe(nodeOf(plain))
    expect(journalOf(url, place)).toBe(journalOf(plain, place))
  })

  test.each(['https://127.0.0.1:3000', 'http://127.0.0.1:3001', 'http://127.0.0.1:3000/other', 'http://db:3000'])('%s has another one', (url) => {
    const place = folder()
    expect(journalOf(url, place)).not.toBe(journalOf(plain, place))
  })

  test('ports that a scheme implies, and letters of a host', () => {
    expect(nodeOf('http://Db.Internal')).toBe(nodeOf('http://db.internal:80/'))
    expect(nodeOf('https://db')).toBe(nodeOf('https://me:pw@DB:443/_xtdb'))
  })

  test.each([
    ['https://db/%61%7E%5f', 'https://db/a~_'],
    ['https://db/a%2fb', 'https://db/a%2Fb'],
    ['https://db/%62/../a', 'https://db/a'],
    ['http://bücher/x', 'http://xn--bcher-kva/x'],
    ['http://[::ffff:10.0.0.1]:3000', 'http://10.0.0.1:3000'],
  ])('%s is %s', (url, same) => expect(nodeOf(url)).toBe(nodeOf(same)))

  test.each([
    ['https://db/a%2Fb', 'https://db/a/b'],
    ['https://db/a%2561', 'https://db/aa'],
  ])('%s is not %s', (url, other) => expect(nodeOf(url)).not.toBe(nodeOf(other)))

  test('the order of the nodes makes no difference, nor does one that comes or goes', () => {
    const place = folder()
    const [one, two, three] = ['http://a:1', 'http://b:1', 'http://c:1'] as const
    const journal = journalOf(two, place, [one])
    expect(journalOf(one, place, [two])).toBe(journal)
    writeFileSync(journal, '')
    expect(journalOf(three, place, [two, one])).toBe(journal)
    expect(journalOf(one, place, [`${two}/`, three])).toBe(journal)
  })

  test('a journal that an earlier version has named is found', () => {
    const place = folder()
    const earlier = join(place, 'xtdb-5a1c8e2d1a3b.db')
    expect(journalOf(plain, place)).not.toBe(earlier)
    const named = join(place, `xtdb-${earlierName(plain)}.db`)
    writeFileSync(named, '')
    expect(journalOf(plain, place)).toBe(named)
  })

  test.each([
    ['http://me:pw@0.0.0.0:3000/', 'http://0.0.0.0:3000'],
    ['https://db/%61/', 'https://db:443/%61'],
    ['http://[::ffff:127.0.0.1]:3000/_xtdb', 'http://[::ffff:7f00:1]:3000'],
  ])('so is one of %s in the spelling before', (url, spelling) => {
    const place = folder()
    const named = join(place, `xtdb-${earlierName(spelling)}.db`)
    expect(earlierNodeOf(url)).toBe(spelling)
    expect(journalOf(url, place)).not.toBe(named)
    writeFileSync(named, '')
    expect(journalOf(url, place)).toBe(named)
  })
})

/** The part of a journal's name that comes from a spelling of an address. */
function earlierName(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 12)
}
