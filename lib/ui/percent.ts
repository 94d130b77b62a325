/** A share as whole percents: 0.123 is 12 %. */
export function percent(share: number): string {
  return `${Math.round(100 * share)} %`
}
