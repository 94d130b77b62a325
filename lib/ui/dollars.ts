/** Dollars as people read them: written here alone, so that one sum reads the same wherever it stands. */

/** An amount in dollars, to the cent, or to more digits where single calls are told: `$0.84`, `-$1.20`, `$0.007`. */
export function dollars(amount: number, digits = 2): string {
  // Sums of the same prices in another order differ in their last bits, and must not differ by a cent.
  const text = (Math.round(Math.abs(amount) * 1e8) / 1e8).toFixed(digits)
  return amount < 0 && Number(text) > 0 ? `-$${text}` : `$${text}`
}
