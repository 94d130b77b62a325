/** A small shop in TypeScript for the recorded agent to work on; the same bytes at every run. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The modules of the shop, in the order in which they depend on each other. */
export const MODULES = ['money', 'catalog', 'stock', 'cart', 'discount', 'shipping', 'tax', 'order'] as const

/** Writes the shop below a folder. */
export function writeShop(folder: string): void {
  for (const [index, name] of MODULES.entries()) put(join(folder, 'src', `${name}.ts`), module(name, 6 + index))
  put(join(folder, 'check.sh'), CHECK)
  put(join(folder, 'README.md'), '# Shop\n\nA shop in eight modules. `sh check.sh` checks all of them.\n')
}

/** A module of so many functions; each one differs a little from the others, as real code does. */
function module(name: string, functions: number): string {
  const title = name.slice(0, 1).toUpperCase() + name.slice(1)
  const lines = [
    `/** ${title}: the rules of the shop about it. */`,
    '',
    `export interface ${title} {`,
    '  id: string',
    '  cents: number',
    '}',
    '',
  ]
  for (let index = 0; index < functions; index += 1) {
    const factor = (index * 7 + name.length * 3) % 11
    lines.push(
      `/** Rule ${index} of ${name}: what is left of an amount after step ${factor}. */`,
      `export function ${name}Rule${index}(amount: number, parts: readonly ${title}[]): number {`,
      `  const sum = parts.reduce((total, part) => total + part.cents, ${factor})`,
      `  if (sum > amount) throw new RangeError('${name} rule ${index}: ' + sum + ' is more than ' + amount)`,
      `  return Math.round((amount - sum) * ${1 + factor} / ${2 + (index % 5)})`,
      '}',
      '',
    )
  }
  return lines.join('\n')
}

/** Prints a line for each rule, as a test runner would, and fails while the discount is wrong. */
const CHECK = `for file in src/*.ts; do
  grep -n 'export function' "$file" | while IFS=: read -r line text; do
    echo "ok $file:$line $text returns what the table of the rule says it returns"
  done
done
if grep -q 'FIXME' src/*.ts; then echo "FAILED src/discount.ts: FIXME is still there"; exit 1; fi
echo "all rules hold"
`

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
