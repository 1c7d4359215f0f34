"""How the page of `diff --html` looks, by day and by night."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --line: #d9dee5; --text: #1b2430; --dim: #5d6b7c; --accent: #1f6feb;
  --red: #b3261e; --red-bg: #fdecea; --green: #17692f; --green-bg: #e6f5ea;
  --amber: #855600; --amber-bg: #fff4d6; --violet: #6f3fb5; --violet-bg: #f2eafd; --blue: #0b5cad;
  --blue-bg: #e5f0fc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1419; --card: #182028; --line: #2d3844; --text: #dfe6ee; --dim: #93a1b1; --accent: #6cb0ff;
    --red: #ff9b92; --red-bg: #3b1f1e; --green: #7fd89a; --green-bg: #173023;
    --amber: #f0c265; --amber-bg: #362b13; --violet: #c9a6ff; --violet-bg: #2b2140; --blue: #8cc4ff;
  --blue-bg: #14283d;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 84rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 1rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
h3 { font-size: .8rem; margin: 1rem 0 .4rem; color: var(--dim); text-transform: uppercase; letter-spacing: .05em; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.t { unicode-bidi: isolate; overflow-wrap: anywhere; }
.ctl { color: var(--violet); background: var(--violet-bg); border-radius: 3px; padding: 0 .15em; font-size: .85em; }
code, .mono, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.dim { color: var(--dim); } .small { font-size: .85rem; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .75rem 1rem;
  min-width: 0; }
.side { font-weight: 700; margin-right: .5rem; }
.chip { display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-size: .75rem; font-weight: 600;
  white-space: nowrap; color: var(--dim); border: 1px solid var(--line); }
.changed, .k-changed { color: var(--amber); background: var(--amber-bg); border-color: transparent; }
.missing, .k-dropped { color: var(--red); background: var(--red-bg); border-color: transparent; }
.extra, .k-injected { color: var(--green); background: var(--green-bg); border-color: transparent; }
.moved { color: var(--blue); background: var(--blue-bg); border-color: transparent; }
.k-truncated { color: var(--violet); background: var(--violet-bg); border-color: transparent; }
.event { background: var(--card); border: 1px solid var(--line); border-left-width: 4px; border-radius: 8px;
  margin: .4rem 0; }
.e-changed { border-left-color: var(--amber); } .e-missing { border-left-color: var(--red); }
.e-extra { border-left-color: var(--green); } .e-moved { border-left-color: var(--blue); }
.branch { box-shadow: 0 0 0 3px var(--accent); border-color: transparent; margin: .9rem 0; }
.branch > .flag, .branch > summary .flag { background: var(--accent); color: var(--card);
  border-color: transparent; }
summary { cursor: pointer; padding: .5rem .75rem; border-radius: 8px; }
summary > .two { display: inline-grid; width: calc(100% - 1.5rem); vertical-align: top; }
summary > .chips { margin-left: 1rem; }
.plain { padding: .5rem .75rem .5rem 2rem; }
.cell { min-width: 0; } .none { color: var(--dim); font-style: italic; }
.no { color: var(--dim); margin-right: .5rem; font-variant-numeric: tabular-nums; }
.inside { padding: 0 1rem 1rem; border-top: 1px solid var(--line); }
.same { color: var(--dim); margin: .4rem 0; } .same > summary { padding: .25rem .75rem; }
.same ol { margin: .25rem 0; padding-left: 1.5rem; list-style: none; }
.message { border-left: 3px solid var(--line); padding: .3rem .75rem; margin: .4rem 0; }
.m-injected { border-color: var(--green); background: var(--green-bg); }
.m-dropped { border-color: var(--red); background: var(--red-bg); }
.m-changed { border-color: var(--amber); } .m-truncated { border-color: var(--violet); }
del { color: var(--red); background: var(--red-bg); }
ins { color: var(--green); background: var(--green-bg); text-decoration: none; }
.m-dropped pre, .m-injected pre { color: inherit; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-size: .8rem; color: var(--dim); font-weight: 600; } td.was { color: var(--red); }
td.now { color: var(--green); }
footer { margin-top: 2.5rem; color: var(--dim); font-size: .85rem; }
@media (max-width: 46rem) { body { padding: .75rem; } .two { gap: .4rem; } }
@media print { body { max-width: none; } .event { break-inside: avoid; } }
"""
