/** Answers that are computed once for each object. */

/** The same function, which keeps its answer for as long as the object exists. The object must never change. */
export function oncePer<K extends object, V extends {}>(of: (object: K) => V): (object: K) => V {
  const answers = new WeakMap<K, V>()
  return (object) => {
    const known = answers.get(object)
    if (known !== undefined) return known
    const answer = of(object)
    answers.set(object, answer)
    return answer
  }
}
