/**
 * The script of the page. It puts in place what the server has drawn, and passes on what the user does. It holds no state
 * but the chosen session, and knows nothing about the figures.
 */
export const SCRIPT = String.raw`
'use strict'
const key = new URLSearchParams(location.search).get('key') ?? ''
const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' }
const at = (id) => document.getElementById(id)
const [outputs, filter, viewer] = [at('outputs'), at('filter'), at('viewer')]

/** The chosen session; empty for the one that was used last. */
let session = ''
let stream = new AbortController()

async function watch() {
  stream.abort()
  const { signal } = (stream = new AbortController())
  for (let wait = 500; !signal.aborted; wait = Math.min(2 * wait, 5000)) {
    try {
      const response = await fetch('events?session=' + encodeURIComponent(session), { headers, signal })
      if (response.status === 401) return live('this address is of an earlier start; the terminal shows the new one', false)
      if (response.ok) {
        live('live', true)
        wait = 250
        await read(response.body.pipeThrough(new TextDecoderStream()).getReader())
      }
    } catch {
      if (signal.aborted) return
    }
    live('the gateway does not answer; trying again', false)
    await new Promise((done) => setTimeout(done, wait))
  }
}

async function read(reader) {
  for (let text = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return
    const events = (text + value).split('\n\n')
    text = events.pop()
    for (const event of events) if (event.startsWith('data: ')) show(JSON.parse(event.slice(6)))
  }
}

function live(text, isLive) {
  at('live').textContent = text
  at('live').classList.toggle('off', !isLive)
}

function show({ regions, lists }) {
  const before = place(document.activeElement)
  for (const [id, html] of Object.entries(regions)) at(id).innerHTML = html
  for (const [id, news] of Object.entries(lists)) patch(at(id), news)
  if (lists.outputs) hide()
  ages()
  if (before !== undefined && document.activeElement === document.body) find(before)?.focus({ preventScroll: true })
}

/** Says how long ago what has a time was, in place of the time of day. */
function ages() {
  for (const time of document.querySelectorAll('time[data-at]')) {
    const minutes = Math.floor((Date.now() - time.dataset.at) / 60000)
    const [count, unit] = minutes < 1 ? [] : minutes < 60 ? [minutes, 'minute'] : minutes < 2880 ? [Math.floor(minutes / 60), 'hour'] : [Math.floor(minutes / 1440), 'day']
    if (!time.title) time.title = time.textContent
    const age = unit === undefined ? 'just now' : count + ' ' + unit + (count === 1 ? '' : 's') + ' ago'
    if (time.textContent !== age) time.textContent = age
  }
}
setInterval(ages, 15000)

/** Changes only the rows that are new or different, so that what is being read stays where it is. */
function patch(list, { order, rows }) {
  const known = new Map([...list.children].map((row) => [row.dataset.key, row]))
  let next = list.firstChild
  for (const name of order) {
    let row = known.get(name)
    known.delete(name)
    if (row === undefined) {
      row = document.createElement(list.dataset.row)
      row.dataset.key = name
      if (list === outputs) row.tabIndex = -1
    }
    if (rows[name] !== undefined) row.innerHTML = rows[name]
    if (row === next) next = row.nextSibling
    else list.insertBefore(row, next)
  }
  for (const row of known.values()) row.remove()
  if (list === outputs && list.querySelector('[tabindex="0"]:not([hidden])') === null) choose(visible()[0], false)
}

/** The place of the focus, so that it can return there after a row was replaced. */
function place(element) {
  const row = element?.closest?.('[data-key]')
  return row ? { list: row.parentElement.id, name: row.dataset.key, act: element.dataset.act } : undefined
}

function find({ list, name, act }) {
  const row = [...at(list).children].find((one) => one.dataset.key === name)
  return (act && row?.querySelector('[data-act="' + act + '"]')) || (list === 'outputs' ? row : row?.querySelector('button'))
}

const visible = () => [...outputs.children].filter((row) => !row.hidden)

function choose(row, focuses = true) {
  for (const one of outputs.querySelectorAll('tr[tabindex="0"]')) one.tabIndex = -1
  if (!row) return
  row.tabIndex = 0
  if (focuses) row.focus()
}

function hide() {
  const words = filter.value.toLowerCase().split(/\s+/)
  for (const row of outputs.children) {
    const text = row.textContent.toLowerCase()
    row.hidden = !words.every((word) => text.includes(word))
  }
}

async function post(path, body) {
  const chosen = session || document.querySelector('[data-session][aria-pressed=true]')?.dataset.session
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify({ session: chosen, ...body }) })
  return response.json()
}

async function act(action, id) {
  if (action !== 'open') {
    at('said').textContent = (await post('act', { action, id })).said
    return
  }
  const { name, about, texts, said } = await post('text', { id })
  if (texts === undefined) return void (at('said').textContent = said)
  at('viewer-name').textContent = name
  at('viewer-about').textContent = about
  const buttons = texts.map(({ label, text }) => {
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: label })
    button.onclick = () => {
      at('viewer-text').textContent = text
      for (const one of buttons) one.setAttribute('aria-pressed', String(one === button))
    }
    return button
  })
  at('viewer-texts').replaceChildren(...buttons)
  at('viewer-text').textContent = ''
  buttons[0]?.click()
  viewer.showModal()
  at('viewer-text').focus()
}

const failed = (error) => (at('said').textContent = 'The gateway does not answer: ' + error.message)

document.addEventListener('click', ({ target }) => {
  const button = target.closest('[data-session],[data-act]')
  if (button === null) return
  if (button.dataset.act !== undefined) return void act(button.dataset.act, button.dataset.id).catch(failed)
  session = button.dataset.session
  at('hits').replaceChildren()
  at('said').textContent = ''
  void watch()
})
outputs.addEventListener('focusin', ({ target }) => choose(target.closest('tr'), false))
filter.addEventListener('input', () => {
  hide()
  choose(visible()[0], false)
})
at('searching').addEventListener('submit', (event) => {
  event.preventDefault()
  post('search', { query: at('query').value }).then(({ html, said }) => {
    if (html === undefined) at('hits').textContent = said
    else at('hits').innerHTML = html
  }, failed)
})

/** Moves the focus in a list by a step, or to an end of it. */
function move(list, from, name) {
  const step = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1 }[name]
  const to = step === undefined ? (name === 'Home' ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, list.indexOf(from) + step))
  return list[to]
}

const KEYS = { p: 'pin', d: 'drop', b: 'back' }

document.addEventListener('keydown', (event) => {
  const { key: name, target } = event
  if (event.ctrlKey || event.metaKey || event.altKey || viewer.open) return
  const used = isTyping(target) ? typed(name, target) : pressed(name, target)
  if (used) event.preventDefault()
})

const isTyping = (target) => target.tagName === 'INPUT'

function typed(name, target) {
  if (name === 'Escape') {
    target.value = ''
    if (target === filter) hide()
    else at('hits').replaceChildren()
    choose(visible()[0])
    return true
  }
  if (target !== filter || (name !== 'ArrowDown' && name !== 'Enter')) return false
  choose(visible()[0])
  return true
}

function pressed(name, target) {
  if (name === '/' || name === 's') {
    at(name === '/' ? 'filter' : 'query').focus()
    return true
  }
  const row = target.closest('#outputs tr')
  if (/^(?:Arrow(?:Up|Down)|Home|End)$/.test(name)) {
    if (row !== null) return choose(move(visible(), row, name)), true
    const buttons = [...document.querySelectorAll('[data-session]')]
    if (buttons.includes(target)) return move(buttons, target, name).focus(), true
  }
  if (row === null) return false
  const { key: id } = row.dataset
  if (/^Arrow(?:Left|Right)$/.test(name)) {
    move([row, ...row.querySelectorAll('button')], target, name).focus()
    return true
  }
  if (name === 'Enter' && target === row) return void act('open', id).catch(failed), true
  if (KEYS[name] === undefined) return false
  const isPinned = row.querySelector('[data-act=unpin]') !== null
  act(name === 'p' && isPinned ? 'unpin' : KEYS[name], id).catch(failed)
  return true
}

void watch()
`
