// Groups of blocks: chosen rows, steps, and the results below the search box.

export const groups = `
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
.flame-weight { margin-left: auto; padding-left: 8px; opacity: 0.8; white-space: nowrap; }
`;
