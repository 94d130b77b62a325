/** The recorded agent: what the user asks for, and the answers of the scripted model. */
import { calls } from '../../rig/reply.ts'
import type { Reply } from '../../rig/reply.ts'

/** A user's prompt with the answers until the agent is done. */
export interface Round {
  prompt: string
  answers: Reply[]
}

function edit(path: string, oldText: string, newText: string): [name: string, args: object] {
  return ['edit', { path, edits: [{ oldText, newText }] }]
}

function rule(name: string, index: number, factor: number): string {
  return `  const sum = parts.reduce((total, part) => total + part.cents, ${factor})\n  if (sum > amount) throw new RangeError('${name} rule ${index}: `
}

function factor(name: string, index: number): number {
  return (index * 7 + name.length * 3) % 11
}

/** An edit of one rule of one module that fits the module as it is at first. */
function change(name: string, index: number, marked: boolean): [name: string, args: object] {
  const before = rule(name, index, factor(name, index))
  const comment = `  // Parts without a price are a mistake of the caller, not of the rule.\n  if (parts.some((part) => Number.isNaN(part.cents))) throw new TypeError('${name}: a part has no price')\n`
  return edit(`src/${name}.ts`, before, `${marked ? '  // FIXME\n' : ''}${comment}${before}`)
}

/** The main line of work, up to where the user goes back. */
export const FIRST: Round[] = [
  {
    prompt: 'Read the shop and tell me how it is built.',
    answers: [
      {
        thinking: 'First the modules that the others need.',
        ...calls(['ls', { path: 'src' }], ['read', { path: 'src/money.ts' }], ['read', { path: 'src/catalog.ts' }]),
      },
      calls(
        ['read', { path: 'src/stock.ts' }],
        ['read', { path: 'src/cart.ts' }],
        ['read', { path: 'src/discount.ts' }],
      ),
      calls(['bash', { command: 'sh check.sh' }]),
      {
        text: 'The shop has eight modules. Each is a list of rules over an amount and parts; money and catalog come first, order needs all others. `check.sh` prints a line for each rule, and all of them hold.',
      },
    ],
  },
  {
    prompt: 'Parts without a price slip through in cart and stock. Refuse them there.',
    answers: [
      { text: 'I guard the first rules of both.', ...calls(change('cart', 0, false), change('stock', 0, false)) },
      calls(change('cart', 5, false), change('stock', 5, false)),
      calls(['bash', { command: 'sh check.sh' }]),
      calls(['grep', { pattern: 'has no price', path: 'src' }]),
      { text: 'Both modules now refuse parts without a price, in two rules each.' },
    ],
  },
  {
    prompt: 'Now discount. Be careful with rule 3.',
    answers: [
      calls(['read', { path: 'src/discount.ts', offset: 20, limit: 30 }], ['read', { path: 'src/money.ts' }]),
      calls(change('discount', 3, true)),
      calls(['bash', { command: 'sh check.sh' }]),
      { thinking: 'The marker is still there.', ...calls(['read', { path: 'src/discount.ts' }]) },
      calls(edit('src/discount.ts', '  // FIXME\n', '')),
      calls(['bash', { command: 'sh check.sh' }]),
      { text: 'Rule 3 of discount refuses parts without a price, and the check passes again.' },
    ],
  },
  {
    prompt: 'Write down what we did in docs/prices.md.',
    answers: [
      calls(['read', { path: 'src/cart.ts' }], ['read', { path: 'src/stock.ts' }]),
      calls(['write', { path: 'docs/prices.md', content: notes('prices') }]),
      { text: 'The notes are in docs/prices.md.' },
    ],
  },
]

/** What the user tries before going back: a way that leads nowhere. */
export const DEAD_END: Round[] = [
  {
    prompt: 'Move all rules into one file.',
    answers: [
      calls(['read', { path: 'src/shipping.ts' }], ['read', { path: 'src/tax.ts' }]),
      calls(['bash', { command: 'cat src/*.ts > src/all.ts; wc -l src/all.ts' }]),
      { text: 'All rules are in src/all.ts now. It is a long file, and every module still imports its own names.' },
    ],
  },
]

/** The work after going back. */
export const SECOND: Round[] = [
  {
    prompt: 'Leave them where they are. Guard shipping and tax in the same way.',
    answers: [
      calls(['bash', { command: 'rm -f src/all.ts; ls src' }]),
      calls(['read', { path: 'src/shipping.ts' }], ['read', { path: 'src/tax.ts' }]),
      calls(change('shipping', 2, false), change('tax', 2, false)),
      calls(change('shipping', 7, false), change('tax', 7, false)),
      calls(['bash', { command: 'sh check.sh' }]),
      { text: 'Shipping and tax are guarded as well.' },
    ],
  },
  {
    prompt: 'And order, which uses them all.',
    answers: [
      calls(['read', { path: 'src/order.ts' }], ['read', { path: 'src/money.ts' }], ['read', { path: 'src/tax.ts' }]),
      calls(change('order', 1, false)),
      calls(change('order', 9, false), change('money', 2, false)),
      calls(['bash', { command: 'sh check.sh' }]),
      { text: 'Order and money are done; every module refuses parts without a price now.' },
    ],
  },
]

/** After the compaction. */
export const THIRD: Round[] = [
  {
    prompt: 'Complete the notes, then check everything once more.',
    answers: [
      calls(['read', { path: 'docs/prices.md' }], ['bash', { command: 'grep -rn "has no price" src' }]),
      calls(['write', { path: 'docs/prices.md', content: notes('prices, complete') }]),
      calls(['read', { path: 'src/order.ts', offset: 1, limit: 40 }]),
      calls(['bash', { command: 'sh check.sh' }]),
      { text: 'The notes are complete and all rules hold.' },
    ],
  },
  {
    prompt: 'One more guard in catalog, please.',
    answers: [
      calls(change('catalog', 4, false)),
      calls(['bash', { command: 'sh check.sh' }]),
      { text: 'Done: catalog refuses them in rule 4.' },
    ],
  },
]

/** The summary that the model gives when it is asked for one. */
export const SUMMARY = `## Goal
Every module of the shop refuses parts without a price.

## Progress
### Done
- [x] cart, stock, discount, shipping, tax, order and money are guarded
- [x] docs/prices.md has the notes

## Next Steps
1. Complete the notes, then guard catalog

## Critical Context
- \`sh check.sh\` prints a line for each rule and ends with "all rules hold"`

function notes(title: string): string {
  const lines = ['cart', 'stock', 'discount', 'shipping', 'tax', 'order', 'money'].flatMap((name) => [
    `## ${name}`,
    `The rules of ${name} take an amount and parts. A part whose price is not a number used to make the result NaN, which`,
    `went unseen until the order was printed. The first rule that meets such a part throws a TypeError now.`,
    '',
  ])
  return [`# Notes: ${title}`, '', ...lines].join('\n')
}
