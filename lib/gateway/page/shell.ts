/** The page before anything has gone through the gateway: its parts, its keys, and the script that fills it. */
import { SCRIPT } from './script.ts'
import { PAGE_STYLE } from './style.ts'

/** The whole page. Its script and its style run only with this nonce. */
export function shell(nonce: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><title>Gateway</title><link rel="icon" href="data:,"><style nonce="${nonce}">${PAGE_STYLE}</style></head><body>
<a class="skip" href="#outputs-title">Skip to the outputs</a>
<header><h1>Gateway</h1><p class="dim" id="totals"></p><p class="dim" id="live" role="status">connecting</p></header>
<main>
<nav aria-labelledby="sessions-title"><h2 id="sessions-title">Sessions</h2><ul id="sessions" data-row="li"></ul></nav>
<article aria-live="off">
<div id="head"></div><div id="figures"></div>
<div class="charts"><div id="chart"></div><div id="window"></div></div>
<section><h3 id="outputs-title" tabindex="-1">Outputs <small class="keys"><kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> open, <kbd>p</kbd> pin, <kbd>d</kbd> drop, <kbd>b</kbd> bring back, <kbd>/</kbd> filter, <kbd>s</kbd> search, <kbd>Esc</kbd> back</small></h3>
<p id="said" role="status" aria-live="polite"></p>
<div class="tools"><input id="filter" type="search" placeholder="Filter by name, tool or state" aria-label="Filter the outputs"><form id="searching" class="tools"><input id="query" type="search" placeholder="Search the whole text of all outputs" aria-label="Search the text of all outputs and files"><button>Search</button></form></div>
<div id="hits" aria-live="polite"></div>
<div class="rows"><table><colgroup><col><col class="state"><col class="size"><col class="acts"></colgroup><thead><tr><th>output</th><th>in the window</th><th class="n">tokens</th><th></th></tr></thead><tbody id="outputs" data-row="tr"></tbody></table></div></section>
<section><h3>What the model sees</h3><div id="seen"></div><div id="changes" data-row="details"></div></section>
<section><h3>Rolls</h3><div id="rolls"></div></section>
<section><h3>What broke the cache</h3><div id="breaks"></div></section>
<section><h3>Calls</h3><div class="rows" tabindex="0" role="region" aria-label="Calls"><table><colgroup><col class="num"><col class="clock"><col class="num"><col class="num"><col class="num"><col class="num"><col class="num"><col></colgroup><thead><tr><th class="n">call</th><th>at</th><th class="n">sent</th><th class="n">without</th><th class="n wide">cached</th><th class="n">cost</th><th class="n wide">answer</th><th></th></tr></thead><tbody id="calls" data-row="tr"></tbody></table></div></section>
</article>
</main>
<dialog id="viewer" aria-labelledby="viewer-name"><h2 id="viewer-name"></h2><p class="dim" id="viewer-about"></p><div class="tools" id="viewer-texts"></div><pre id="viewer-text" tabindex="0"></pre><form method="dialog"><button>Close</button></form></dialog>
<script nonce="${nonce}">${SCRIPT}</script></body></html>`
}
