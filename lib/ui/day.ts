/** Days for people. */

/** The day of a time in milliseconds, in this machine's time zone. */
export function dayOf(at: number): string {
  const date = new Date(at)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}
