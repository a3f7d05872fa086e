"""How a page looks.

Core. It stands in the page itself. Text has a contrast of at least 4.5 to 1 in light and dark
(WCAG 2.2, 1.4.3).
"""

STYLE = """
:root {
  --back: #fff; --text: #1b1f24; --dim: #57606a; --line: #d0d7de;
  --bar: #0a58b8; --good: #116329; --bad: #b3261e; --code: #f3f5f7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --text: #e6e9ec; --dim: #a2abb5; --line: #3b434c;
    --bar: #6cb0ff; --good: #5fd27d; --bad: #ff9d94; --code: #20252b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, "Noto Sans CJK SC", "Noto Sans SC", "Microsoft YaHei", sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 {
  font-size: 1.1rem; margin: 2rem 0 .5rem; padding-bottom: .25rem;
  border-bottom: 1px solid var(--line);
}
h3 { font-size: 1rem; margin: 1.25rem 0 .5rem; overflow-wrap: anywhere; }
p, li, dd { overflow-wrap: anywhere; }
ul { padding-left: 1.25rem; }
.verdict { font-weight: 600; font-size: 1.1rem; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.dim { color: var(--dim); }
dl { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: .25rem 1rem; margin: 0; }
dt { color: var(--dim); }
dd { margin: 0; }
.scroll { position: relative; overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
caption {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap;
}
th, td {
  text-align: left; vertical-align: top; padding: .3rem .6rem;
  border-bottom: 1px solid var(--line);
}
td { max-width: 24rem; overflow-wrap: anywhere; }
th:not(.number), td:not(.number) { min-width: 7rem; }
td:first-child { min-width: 9rem; }
th.number { min-width: 5rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
:focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
.bar {
  display: grid; grid-template-columns: 14rem 1fr 11rem; gap: .75rem;
  align-items: center; margin: .25rem 0;
}
.bar svg { display: block; }
.bar rect { fill: var(--bar); }
.bar .name { overflow-wrap: anywhere; }
.bar .said { font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .95em; }
pre {
  background: var(--code); padding: .75rem; border-radius: 4px;
  white-space: pre-wrap; overflow-wrap: anywhere;
}
@media (max-width: 40rem) {
  .bar { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .75rem; }
  .bar svg { order: 1; flex: 0 0 100%; }
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .5rem; }
}
@media print {
  .scroll { overflow: visible; }
  thead { display: table-header-group; }
  tr, .bars, pre, li { break-inside: avoid; }
  h1, h2, h3 { break-after: avoid; }
}
"""
