/** The look of the gateway's page, on top of the reports' own. */
import { STYLE } from '../../ui/index.ts'

/** The whole style sheet. */
export const PAGE_STYLE = `${STYLE}
:root{--accent:var(--pi-context-manager);--focus:#0b57d0;--warn:#a5411a}
@media(prefers-color-scheme:dark){:root{--focus:#9cc3ff;--warn:#f0a074}}
body{overflow-y:scroll}
main{max-width:1280px;display:grid;grid-template-columns:minmax(220px,270px) minmax(0,1fr);gap:0 28px;padding-top:0}
header{max-width:1280px;margin:0 auto;padding:18px 14px 8px;display:flex;flex-wrap:wrap;gap:4px 16px;align-items:baseline}
header h1{margin:0}header p{margin:0}#live{margin-left:auto;font-size:.85rem}#live::before{content:"";display:inline-block;width:.6em;height:.6em;border-radius:50%;background:var(--bound);margin-right:.45em}#live.off::before{background:var(--warn)}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--card);padding:6px 10px;z-index:2}
:focus-visible{outline:2px solid var(--focus);outline-offset:1px;border-radius:4px}
button{font:inherit;color:inherit;background:none;border:1px solid var(--line);border-radius:6px;padding:.15em .55em;cursor:pointer}button:hover{border-color:var(--accent)}
nav{position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto;padding:2px 2px 20px}nav h2{margin-top:.6em}
nav ul{list-style:none;margin:0;padding:0;display:grid;grid-template-columns:minmax(0,1fr);gap:6px}nav button{width:100%;text-align:left;background:var(--card);padding:8px 10px;border-radius:10px;display:block}
nav button[aria-pressed=true]{border-color:var(--accent);box-shadow:inset 3px 0 0 var(--accent)}nav time{float:right;color:var(--dim);font-size:.8rem;font-variant-numeric:tabular-nums}
nav span{display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:.9rem}nav small,td small{color:var(--dim);font-size:.8rem}td small{display:block}
.note{border-left:3px solid var(--accent);padding-left:10px}#head h2{margin-top:.6em;display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden}
.line.sent{stroke:var(--accent);stroke-width:2.4}.line.without{stroke:var(--append)}.legend i.sent{background:var(--accent)}.legend i.without{background:var(--append)}.legend i.roll{width:3px;height:10px;background:var(--accent)}
svg.shares{height:16px;margin:6px 0}.part,.key{fill:var(--other);background:var(--other)}.key{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.5em}
.share-tool-outputs{fill:var(--accent);background:var(--accent)}.share-references{fill:var(--bound);background:var(--bound)}.share-messages{fill:var(--edit);background:var(--edit)}.share-answers{fill:var(--write);background:var(--write)}.share-tool-calls{fill:var(--bash);background:var(--bash)}.share-reasoning{fill:var(--grep);background:var(--grep)}
figure table{min-width:0;width:100%}section h3{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}section h3 small{color:var(--dim);font-weight:400}
section ul,section ol{margin:.3em 0;padding-left:1.6em;font-size:.92rem}section li{margin:.25em 0}
.tools{display:flex;flex-wrap:wrap;gap:8px;margin:.3em 0;align-items:center}form.tools{flex:1 1 20em;flex-wrap:nowrap;margin:0}input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.3em .6em;flex:1 1 14em;min-width:0}
.rows{max-height:70vh;overflow:auto;border:1px solid var(--line);border-radius:10px;background:var(--card);contain:content}.rows table{font-size:.88rem;table-layout:fixed;width:100%}.rows col.num{width:5.6em}.rows col.size{width:9em}.rows col.clock{width:7em}.rows col.state{width:9.5em}.rows col.acts{width:14.5em}.rows td{overflow:hidden;text-overflow:ellipsis}.rows thead th{position:sticky;top:0;background:var(--card);z-index:1}
td.acts{text-align:right}td.acts button{font-size:.82rem;margin-left:4px}
.open{border:none;padding:0;text-align:left;overflow-wrap:anywhere;white-space:normal;font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.85rem}.open:hover{text-decoration:underline}
td.state,#calls td:last-child{white-space:normal}.state.reference,.state.line{color:var(--bound)}.state.excerpt{color:var(--mask)}tr:focus-visible{outline-offset:-2px}tr[hidden]{display:none}
dialog{width:min(960px,94vw);max-height:90vh;border:1px solid var(--line);border-radius:12px;background:var(--bg);color:var(--fg);padding:16px}dialog::backdrop{background:#0008}dialog h2{margin:0 0 .3em;overflow-wrap:anywhere}dialog pre{max-height:60vh}
#said{min-height:1.5em;color:var(--accent);font-weight:600;margin:0}.big{grid-template-columns:repeat(auto-fit,minmax(118px,1fr))}.big span{display:block;line-height:1.3}kbd{font:600 .8rem ui-monospace,monospace;border:1px solid var(--line);border-radius:4px;padding:0 .35em;background:var(--card)}
.keys{color:var(--dim);font-size:.85rem}#hits li{overflow-wrap:anywhere}
@media(max-width:900px){main{grid-template-columns:minmax(0,1fr)}nav{position:static;max-height:none;padding-bottom:4px}nav ul{grid-template-columns:none;grid-auto-flow:column;grid-auto-columns:minmax(210px,40%);overflow-x:auto;padding:2px}}
@media(max-width:560px){.wide,.rows col{display:none}.rows table{table-layout:auto}.big{grid-template-columns:repeat(2,minmax(0,1fr))}.rows th,.rows td{padding:.28em .4em}.rows thead:has(+#outputs){display:none}#outputs tr{display:grid;grid-template-columns:1fr auto;border-bottom:1px solid var(--line);padding:.3em 0}#outputs tr[hidden]{display:none}#outputs td{border:none;padding:.1em .5em}#outputs .what{grid-column:1/3;min-width:0}#outputs .acts{grid-column:1/3;text-align:left}td.acts button{margin:2px 6px 2px 0;padding:.3em .8em}nav ul{grid-auto-columns:minmax(210px,80%)}#live{margin-left:0}.keys{display:none}}
@media(prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
`
