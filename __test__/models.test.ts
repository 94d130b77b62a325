/** Facts about models by their names, and the table that has them. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { modelNamed } from '../lib/models/model.ts'
import { readName } from '../lib/models/name.ts'
import { callCost, factorsOf, pricesOf, pricesWith, windowOf } from '../lib/models/prices.ts'
import type { CataloguePrices, GivenPrices } from '../lib/models/prices.ts'
import { rulesOf } from '../lib/models/rules.ts'
import type { Binding, ReasoningRule, Route } from '../lib/models/rules.ts'

const MESSAGES: Route = { provider: 'anthropic', api: 'anthropic-messages' }
const RESPONSES: Route = { provider: 'openai', api: 'openai-responses' }
const CHAT: Route = { provider: 'openai', api: 'openai-completions' }

describe('names', () => {
  test.each([
    ['claude-opus-5-5', 'claude', 'opus', 5.5],
    ['anthropic/claude-opus-5.5', 'claude', 'opus', 5.5],
    ['us.anthropic.claude-sonnet-5-5-v1:0', 'claude', 'sonnet', 5.5],
    ['claude-opus-5', 'claude', 'opus', 5],
    ['claude-opus-5-20260301', 'claude', 'opus', 5],
    ['claude-haiku-4-5-20251001', 'claude', 'haiku', 4.5],
    ['anthropic.claude-sonnet-4-6@default', 'claude', 'sonnet', 4.6],
    ['claude-3-5-sonnet-20241022', 'claude', 'sonnet', 3.5],
    ['~anthropic/claude-fable-latest', 'claude', 'fable', undefined],
    ['arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-fable-5-2', 'claude', 'fable', 5.2],
    ['gpt-6.1-sol', 'gpt', 'sol', 6.1],
    ['openai/gpt-5.6-terra', 'gpt', 'terra', 5.6],
    ['gpt-5.4-mini-2026-03-05', 'gpt', 'mini', 5.4],
    ['gpt-4.1', 'gpt', undefined, 4.1],
    ['o4-mini', 'gpt', 'mini', 4],
    ['openai/gpt-oss-120b', undefined, undefined, undefined],
    ['gemini-3.1-pro-preview', 'gemini', undefined, 3.1],
    ['deepseek-v4-pro', 'deepseek', undefined, 4],
    ['moonshotai/kimi-k2.7-code', 'kimi', undefined, 2.7],
    ['k3-256k', 'kimi', undefined, 3],
    ['qwen3.8-max', 'qwen', undefined, 3.8],
    ['my-deployment', undefined, undefined, undefined],
    ['', undefined, undefined, undefined],
  ])('%s is read', (name, family, tier, version) => {
    expect(readName(name)).toMatchObject({ family, tier, version })
  })
})

describe('binding', () => {
  test.each<[name: string, route: Route, binding: Binding, asked: Binding]>([
    ['claude-fable-5-2', MESSAGES, 'refuses', 'drops'],
    ['claude-fable-5-1', MESSAGES, 'refuses', 'drops'],
    ['claude-mythos-5-2', MESSAGES, 'refuses', 'drops'],
    ['claude-opus-5-5', MESSAGES, 'refuses', 'drops'],
    ['claude-sonnet-5-5', {}, 'refuses', 'drops'],
    ['claude-haiku-5-5', MESSAGES, 'refuses', 'drops'],
    ['anthropic/claude-opus-5.5-fast', { provider: 'vercel-ai-gateway', api: 'anthropic-messages' }, 'refuses', 'drops'],
    ['claude-opus-6', MESSAGES, 'refuses', 'drops'],
    ['claude-opus-latest', MESSAGES, 'refuses', 'drops'],
    ['claude-saga-1', MESSAGES, 'refuses', 'drops'],
    ['claude-2.1', MESSAGES, 'none', 'none'],
    ['claude-saga', MESSAGES, 'refuses', 'drops'],
    ['claude-opus-5', MESSAGES, 'none', 'none'],
    ['claude-sonnet-5', MESSAGES, 'none', 'none'],
    ['claude-fable-5', MESSAGES, 'none', 'none'],
    ['claude-mythos-preview', MESSAGES, 'none', 'none'],
    ['claude-3-7-sonnet', MESSAGES, 'none', 'none'],
    ['gpt-6.2-sol', RESPONSES, 'drops', 'drops'],
    ['gpt-5.6-luna', RESPONSES, 'drops', 'drops'],
    ['gpt-latest', RESPONSES, 'drops', 'drops'],
    ['gpt-6.2-sol', CHAT, 'none', 'none'],
    ['gpt-5.5', RESPONSES, 'none', 'none'],
    ['o4-mini', RESPONSES, 'none', 'none'],
    ['gemini-4-argon', {}, 'none', 'none'],
    ['deepseek-v4-pro', {}, 'none', 'none'],
    ['kimi-k3', MESSAGES, 'none', 'none'],
    ['my-deployment', MESSAGES, 'refuses', 'drops'],
    ['my-deployment', { api: 'anthropic-messages' }, 'refuses', 'drops'],
    ['my-deployment', { provider: 'minimax', api: 'anthropic-messages' }, 'none', 'none'],
    ['arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc', { provider: 'amazon-bedrock' }, 'refuses', 'drops'],
    ['my-deployment', { provider: 'azure', api: 'azure-openai-responses' }, 'drops', 'drops'],
    ['my-deployment', {}, 'none', 'none'],
  ])('%s on %o is %s, asked for drops %s', (name, route, binding, asked) => {
    expect(rulesOf(name, route)).toMatchObject({ binding, askedBinding: asked })
  })

  test.each([
    ['claude-opus-5-5', true],
    ['claude-sonnet-5-5', true],
    ['claude-haiku-5-5', false],
    ['claude-fable-5-2', false],
    ['claude-opus-5', false],
    ['gpt-6.2-sol', false],
  ])('text_between_calls_of_%s_is_reasoning: %s', (name, is) => {
    expect(rulesOf(name).textIsReasoning).toBe(is)
  })
})

describe('the parts that return with an answer', () => {
  test.each<[string, Route, ReasoningRule]>([
    ['claude-opus-5-5', MESSAGES, 'turn'],
    ['claude-opus-4-6', MESSAGES, 'turn'],
    ['gpt-6.2-sol', RESPONSES, 'items'],
    ['gpt-5.5', RESPONSES, 'items'],
    ['gpt-5.5', CHAT, 'free'],
    ['grok-4.7', { provider: 'xai', api: 'openai-responses' }, 'items'],
    ['gemini-3.1-pro-preview', {}, 'signatures'],
    ['deepseek-v4-pro', {}, 'calls'],
    ['kimi-k3', {}, 'calls'],
    ['glm-5.3', {}, 'calls'],
    ['qwen3.8-max', {}, 'calls'],
    ['MiniMax-M3', {}, 'calls'],
  ])('%s on %o: %s', (name, route, rule) => {
    expect(rulesOf(name, route).reasoning).toBe(rule)
  })
})

describe('prices and caches', () => {
  test.each<[string, number, number]>([
    ['claude-haiku-5-5', 100_000, 0.1 * 0.1 + 0.5 * 0.01],
    ['claude-haiku-5-5', 100_001, 5 * (0.1 * 0.100001 + 0.5 * 0.01)],
    ['gpt-5.5', 272_001, 2 * 5 * 0.272001 + 1.5 * 30 * 0.01],
    ['claude-opus-5-5', 900_000, 4 * 0.9 + 20 * 0.01],
  ])('a call of %s with a prompt of %i tokens has the prices of its step, also for its output', (model, input, cost) => {
    expect(callCost(pricesOf(readName(model))!, { input, cacheRead: 0, cacheWrite: 0, output: 10_000 })).toBeCloseTo(cost, 9)
  })

  test.each([
    ['gpt-6.2-astra', 8, 40, 0.4, 10],
    ['gpt-6-astra', 10, 50, 1, 12.5],
    ['gpt-6-cyber', 20, 100, 2, 25],
    ['gpt-5.6-cyber', 12.5, 75, 1.25, 15.625],
    ['gpt-5.3-codex', 1.75, 14, 0.175, 1.75],
    ['gpt-5.2-pro', 21, 168, 21, 21],
    ['gpt-5.1', 1.25, 10, 0.125, 1.25],
    ['gpt-5-mini-2025-08-07', 0.25, 2, 0.025, 0.25],
    ['gpt-5-nano', 0.05, 0.4, 0.005, 0.05],
    ['gpt-4.1-mini', 0.4, 1.6, 0.1, 0.4],
    ['gpt-4o', 2.5, 10, 1.25, 2.5],
    ['o4-mini', 1.1, 4.4, 0.275, 1.1],
    ['gemini-4-neon', 3, 15, 0.15, 3],
    ['gemini-4-hydrogen', 1.5, 7.5, 0.075, 1.5],
    ['gemini-4-carbon', 2, 10, 0.1, 2],
    ['gemini-2.5-flash-lite', 0.1, 0.4, 0.01, 0.1],
    ['gemini-2.5-flash', 0.3, 2.5, 0.03, 0.3],
    ['kimi-for-coding', 0.95, 4, 0.19, 0.95],
    ['kimi-for-coding-highspeed', 1.9, 8, 0.38, 1.9],
    ['MiniMax-M2.7-highspeed', 0.6, 2.4, 0.06, 0.375],
    ['glm-4.7', 0.6, 2.2, 0.11, 0.6],
    ['mistral-large-latest', 0.7, 2.1, 0.07, 0.7],
    ['devstral-2512', 0.4, 2, 0.04, 0.4],
  ])('%s costs %d and %d dollars a million tokens, %d from the cache and %d to write it', (model, input, output, cacheRead, cacheWrite) => {
    expect(pricesOf(readName(model))).toMatchObject({ input, output, cacheRead, cacheWrite })
  })

  test.each<[string, GivenPrices, CataloguePrices | undefined]>([
    ['claude-opus-5-5', {}, { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 }],
    ['claude-opus-5-5', { input: 2, output: 9 }, { input: 2, output: 9, cacheRead: 0.2, cacheWrite: 5 }],
    ['claude-opus-5-5', { cacheWrite: 0 }, { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 4 }],
    ['my-model', {}, undefined],
    ['my-model', { output: 5 }, undefined],
    ['my-model', { input: 0, output: 5 }, undefined],
    ['my-model', { input: 2 }, { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 }],
    ['my-model', { input: 2, output: 3, cacheRead: 1, cacheWrite: 4 }, { input: 2, output: 3, cacheRead: 1, cacheWrite: 4 }],
    [
      'my-model',
      { input: 2, tiers: [{ inputTokensAbove: 100, factor: 3 }] },
      {
        ...{ input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 },
        tiers: [{ inputTokensAbove: 100, input: 6, output: 30, cacheRead: expect.closeTo(0.6, 9) as number, cacheWrite: 7.5 }],
      },
    ],
    [
      'gpt-5.5',
      { input: 1, output: 2, cacheRead: 0.5, cacheWrite: 1 },
      {
        ...{ input: 1, output: 2, cacheRead: 0.5, cacheWrite: 1 },
        tiers: [{ inputTokensAbove: 272_000, input: 2, output: 3, cacheRead: 1, cacheWrite: 2 }],
      },
    ],
  ])('%s with %o from its user costs %o', (model, given, prices) => {
    expect(pricesWith(model, given)).toEqual(prices)
  })

  test.each([
    ['claude-opus-5-5', 0.05, 1.25, []],
    ['claude-sonnet-5-5', 0.05, 1.25, []],
    ['claude-fable-5-1', 0.025, 1.25, []],
    ['claude-fable-5-2', 0.025, 1.25, []],
    ['claude-haiku-5-5', 0.1, 1.25, [{ inputTokensAbove: 100_000, factor: 5 }]],
    ['claude-opus-4-8', 0.1, 1.25, []],
    ['gpt-6.1-sol', 0.05, 1.25, [{ inputTokensAbove: 272_000, factor: 2 }]],
    ['gpt-5.6-sol', 0.1, 1.25, [{ inputTokensAbove: 272_000, factor: 2 }]],
    ['gpt-5.5', 0.1, 1, [{ inputTokensAbove: 272_000, factor: 2 }]],
    ['gpt-5.4-mini', 0.1, 1, []],
    ['gemini-3.1-pro-preview', 0.1, 1, [{ inputTokensAbove: 200_000, factor: 2 }]],
    ['gemini-3.8-flash', 0.1, 1, []],
    ['gemini-4-argon', 0.05, 1, []],
    ['deepseek-flash', 0.02, 1, []],
    ['MiniMax-M3', 0.2, 1, [{ inputTokensAbove: 512_000, factor: 2 }]],
  ])('%s: a cached token costs %d of a fresh one, a written one %d', (name, read, write, tiers) => {
    const { input, cacheRead, cacheWrite, tiers: steps = [] } = modelNamed(name)
    expect(cacheRead / input).toBeCloseTo(read, 6)
    expect(cacheWrite / input).toBeCloseTo(write, 6)
    expect(steps).toEqual(tiers)
  })

  test('cache_kind_and_lifetime_follow_family', () => {
    expect(modelNamed('claude-opus-5-5')).toMatchObject({ lookbackBlocks: 20, cacheTtlMs: 300_000 })
    expect(modelNamed('gpt-6-sol')).toMatchObject({ lookbackEndings: 20, cacheTtlMs: 1_800_000 })
    expect(modelNamed('gpt-5.5')).not.toHaveProperty('lookbackEndings')
    expect(modelNamed('deepseek-v4-pro')).not.toHaveProperty('lookbackBlocks')
  })

  test('long_retention_costs_two_to_write', () => {
    expect(modelNamed('claude-opus-5-5', { retention: 'long' })).toMatchObject({ cacheTtlMs: 3_600_000, input: 4, cacheWrite: 8 })
    expect(modelNamed('gpt-5.5', { retention: 'long' })).toEqual(modelNamed('gpt-5.5'))
  })

  test('option_overrides_binding', () => {
    expect(modelNamed('claude-opus-5-5', { binding: 'keeps' }).binding).toBe('keeps')
    expect(modelNamed('my-deployment', { binding: 'drops', contextWindow: 1000 })).toMatchObject({ binding: 'drops', contextWindow: 1000, input: 0 })
  })

  test('steps_that_cost_no_more_are_left_out', () => {
    const tier = (inputTokensAbove: number, input: number) => ({ inputTokensAbove, input, output: 0, cacheRead: 0, cacheWrite: 0 })
    expect(factorsOf({ input: 2, tiers: [tier(100, 2), tier(200, 3), tier(0, 9)] })).toEqual([{ inputTokensAbove: 200, factor: 1.5 }])
    expect(factorsOf({ input: 0, tiers: [tier(100, 2)] })).toEqual([])
    expect(factorsOf({ input: 1 })).toEqual([])
  })
})

describe('the table', () => {
  const script = fileURLToPath(new URL('../scripts/models.mjs', import.meta.url))
  const run = (...args: string[]): { code: number | null; stderr: string } => {
    const { status: code, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
    return { code, stderr }
  }
  const source = readFileSync(new URL('../models.toml', import.meta.url), 'utf8')

  test('the code is that of models.toml', () => {
    expect(run('--check')).toEqual({ code: 0, stderr: '' })
  })

  test.each<[change: [from: string, to: string], sentence: string]>([
    [['{ family = "glm", name = \'5-turbo\', since = 5,', '{ family = "glm", name = \'5-turbo\','], 'model 74 (glm 5-turbo) lacks "since"'],
    [["name = '5-turbo'", "name = '('"], 'model 74 (glm (): name can\'t be "("'],
    [['prices = [1.2, 4, 0.24]', 'prices = [1.2, 4]'], "model 74 (glm 5-turbo): prices can't be [1.2,4]"],
    [[', prices = [1.2, 4, 0.24], window = 200_000', ''], 'model 74 (glm 5-turbo) has neither prices nor a window'],
    [['step = "minimax"', 'step = "other"'], 'model 77 (minimax m3$): step can\'t be "other"'],
    [['prices = [1.2, 4, 0.24]', 'price = [1.2, 4, 0.24]'], 'model 74 (glm 5-turbo) has no field "price"'],
    [['write = 1.25', ''], '[unknown] lacks "write"'],
    [['reasoning = "signatures"', 'reasoning = "some"'], 'rule 8 (gemini): reasoning can\'t be "some"'],
    [
      ["name = 'fable|mythos', since = 5.1", "name = 'fable|mythos', since = 5.3"],
      'model 2 (claude fable|mythos) is never reached: an earlier row has its name and an older version',
    ],
    [['prefix = { kind = "prefix", ', 'prefix = { kind = "prefix", lookback = 3, '], 'caches.prefix: a common prefix has no lookback'],
  ])('a row with a fault is named: %j', ([from, to], sentence) => {
    const file = join(mkdtempSync(join(tmpdir(), 'models-')), 'models.toml')
    expect(source).toContain(from)
    writeFileSync(file, source.replace(from, to))
    expect(run('--check', '--table', file)).toEqual({ code: 1, stderr: `models.toml: ${sentence}\n` })
  })

  test.each([
    ['claude-opus-5-5', 1_000_000],
    ['claude-opus-4-6', 1_000_000],
    ['claude-opus-4-5', 200_000],
    ['claude-sonnet-4-20250514', 200_000],
    ['claude-haiku-4-5', 200_000],
    ['claude-opus-latest', 1_000_000],
    ['gpt-6.1-sol', 272_000],
    ['o4-mini', 200_000],
    ['gemini-2.5-pro', 1_048_576],
    ['claude-sonnet-4-5', 200_000],
    ['claude-sonnet-4-6', 1_000_000],
    ['gpt-4o-mini', 128_000],
    ['kimi-k3', 1_048_576],
    ['kimi-k3-256k', 262_144],
    ['kimi-k2.5', 0],
    ['my-deployment', 0],
  ])('%s has a window of %i tokens', (name, window) => {
    expect(windowOf(readName(name))).toBe(window)
  })
})
