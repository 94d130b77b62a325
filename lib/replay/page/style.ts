/** The look of the pages: system fonts, the reader's own light or dark, one column on a phone. */
export const STYLE = `
:root{color-scheme:light dark;--bg:#fbfaf8;--fg:#1d1c1a;--dim:#6a675f;--line:#dedad2;--card:#fff;--append:#9a958a;--pi:#d5672b;--mask:#b78c1e;--clear:#7b9a2c;--sections:#b04a8a;--anchored:#1f6feb;--bound:#2c9a6c;--read:#3f7fd1;--bash:#d5802b;--edit:#8a5bd1;--write:#c24d7a;--grep:#2c9a8c;--other:#8d887d}
@media(prefers-color-scheme:dark){:root{--bg:#161614;--fg:#e9e6df;--dim:#9d988d;--line:#34322d;--card:#1e1d1a;--append:#8d887d;--pi:#f08a4b;--mask:#d9b04a;--clear:#a4c353;--sections:#dd7cb8;--anchored:#6aa7ff;--bound:#58c797;--read:#6aa0ea;--bash:#f0a355;--edit:#ad86ea;--write:#e57fa5;--grep:#56c4b6;--other:#9d988d}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1060px;margin:0 auto;padding:20px 14px 60px}h1{font-size:1.5rem;line-height:1.2;margin:.2em 0}h2{font-size:1.15rem;margin:1.6em 0 .3em;overflow-wrap:anywhere}h3{font-size:.95rem;margin:1.2em 0 .4em;font-weight:600}
p{margin:.4em 0;max-width:70ch}.dim{color:var(--dim)}code,pre,td.n,th.n{font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;margin:.4em 0}table{border-collapse:collapse;font-size:.9rem;min-width:100%}th,td{padding:.28em .6em;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}td.n,th.n{text-align:right}th{color:var(--dim);font-weight:500}tr.own td{font-weight:650}
.big{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:10px;margin:14px 0}.big div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 12px}.big b{display:block;font-size:1.5rem;line-height:1.2}.big span{color:var(--dim);font-size:.85rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:14px;align-items:start}figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px}figcaption{font-size:.85rem;color:var(--dim);margin-bottom:4px}svg{display:block;width:100%;height:auto}
.axis,.label{font-size:11px;fill:var(--dim)}.label{fill:var(--fg)}.grid{stroke:var(--line)}.line{fill:none;stroke-width:1.6;stroke:var(--other)}.mark{stroke:var(--anchored);stroke-width:2}
.append{stroke:var(--append)}.pi{stroke:var(--pi)}.mask{stroke:var(--mask)}.clear{stroke:var(--clear)}.sections{stroke:var(--sections)}.anchored{stroke:var(--anchored);stroke-width:2.4}.bound{stroke:var(--bound);stroke-dasharray:4 3}
.bar{stroke:none}.bar.pi{fill:var(--pi)}.bar.anchored{fill:var(--anchored)}.bar.append{fill:var(--append)}
.span{fill:var(--other)}.tool-read{fill:var(--read)}.tool-bash{fill:var(--bash)}.tool-edit{fill:var(--edit)}.tool-write{fill:var(--write)}.tool-grep,.tool-find,.tool-ls{fill:var(--grep)}
.legend{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:.85rem;margin:6px 0}.legend i{display:inline-block;width:14px;height:4px;border-radius:2px;vertical-align:middle;margin-right:5px;background:var(--other)}
details{border-top:1px solid var(--line);padding:.3em 0}summary{cursor:pointer;padding:.35em 0;overflow-wrap:anywhere}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px;font-size:.8rem;max-height:24em;overflow:auto}
`
