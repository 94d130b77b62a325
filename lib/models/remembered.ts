/** Answers that depend on a model's name alone: a request asks for them again and again. */

/** The number of names whose answers are kept at a time. Few sessions use more models; a client can make up any number. */
const MOST = 100

/** The length of the longest name that is kept: models have shorter ones. */
const LONGEST = 300

/** A question with its answers. They are shared, so they can't be changed. */
export function remembered<Asked extends readonly unknown[], Answer extends object>(
  keyOf: (...asked: Asked) => string,
  find: (...asked: Asked) => Answer,
): (...asked: Asked) => Answer {
  const answers = new Map<string, Answer>()
  return (...asked) => {
    const key = keyOf(...asked)
    let answer = answers.get(key)
    if (answer !== undefined) return answer
    answer = Object.freeze(find(...asked))
    if (key.length > LONGEST) return answer
    if (answers.size >= MOST) answers.clear()
    answers.set(key, answer)
    return answer
  }
}
