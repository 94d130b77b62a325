/** A number of tokens in three or four characters: 812, 9.4k, 183k, 52M. */
export function tokens(count: number): string {
  const scaled = (value: number, unit: string): string => `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit}`
  if (count >= 999_500_000) return scaled(count / 1_000_000_000, 'G')
  if (count >= 999_500) return scaled(count / 1_000_000, 'M')
  return count >= 1000 ? scaled(count / 1000, 'k') : String(Math.round(count))
}
