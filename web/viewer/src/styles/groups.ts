// Groups of blocks: chosen rows, steps, and the results below the search box.

export const groups = `
.fact-link {
  padding: 0;
  color: inherit;
  font: inherit;
  text-align: left;
  text-decoration: underline dotted var(--faint);
  text-underline-offset: 3px;
}
.details-note { color: var(--dim); font-size: var(--small); font-weight: 450; letter-spacing: 0; }
button.share[aria-pressed="true"] { background: var(--tint); }
.step-bars {
  display: flex;
  align-items: flex-end;
  gap: 1px;
  height: 40px;
  margin-top: 4px;
  border-bottom: 1px solid var(--line-strong);
}
.step-bars li { flex: 1 1 0; min-width: 2px; max-width: 28px; height: 100%; }
.step-bar {
  display: flex;
  align-items: flex-end;
  width: 100%;
  height: 100%;
  padding: 0;
  border: 0;
  background: none;
  cursor: pointer;
}
.step-bar span {
  width: 100%;
  min-height: 1px;
  border-radius: 1px 1px 0 0;
  background: var(--accent);
  opacity: 0.75;
}
.step-bar:hover { background: var(--hover); }
.step-bar:hover span, .step-bar[aria-pressed="true"] span { opacity: 1; }
.results {
  position: absolute;
  z-index: 20;
  top: 30px;
  right: 0;
  width: 420px;
  max-width: min(420px, 92vw);
  max-height: min(460px, 70vh);
  padding: 8px;
  overflow: auto;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--surface);
  box-shadow: var(--shadow);
  visibility: hidden;
}
.search:focus-within .results { visibility: visible; }
.results-head {
  display: flex;
  align-items: baseline;
  justify-content: space-between;
  gap: 10px;
  padding: 0 4px 4px;
  font-size: var(--small);
}
.results-more { padding: 4px; font-size: var(--small); }
.flame { container: flame / inline-size; }
.flame-body { display: flex; flex: 1; min-height: 0; }
.flame-body > .plot { flex: 1 1 50%; min-width: 0; }
.code {
  display: flex;
  flex: 0 1 58%;
  flex-direction: column;
  min-width: 0;
  border-left: 1px solid var(--line);
}
.code .table { flex: 1; min-height: 0; }
.code-name { padding-left: calc(var(--depth) * 14px); }
.code-leaf { display: inline-block; width: 18px; }
.code-toggle {
  width: 18px;
  height: 18px;
  padding: 0;
  border: 0;
  background: none;
  color: var(--dim);
  vertical-align: middle;
  cursor: pointer;
}
.code-toggle:hover { color: var(--text); }
.code-toggle .icon { width: 9px; height: 9px; }
.sandwich {
  flex: none;
  max-height: 45%;
  padding: 8px 12px;
  overflow: auto;
  border-top: 1px solid var(--line);
}
.sandwich-sides { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; }
.sandwich h5 { margin: 6px 0 2px; color: var(--dim); font-size: var(--small); font-weight: 500; }
@container flame (width < 900px) {
  .flame-body[data-table="true"] > .plot { display: none; }
  .code { flex: 1 1 auto; border-left: 0; }
}
.flame-weight { margin-left: auto; padding-left: 8px; opacity: 0.8; white-space: nowrap; }
`;
