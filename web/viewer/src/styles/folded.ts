// Steps over each other.

export const folded = `
.folded {
  display: grid;
  flex: 1;
  grid-template: auto minmax(0, 1fr) / minmax(0, 1fr) 330px;
  gap: 8px 20px;
  min-height: 0;
  padding: 10px 14px 12px;
}
.folded-text { grid-column: 1 / -1; font-weight: 600; }
.folded-text .dim { font-weight: 400; }
.folded-pictures {
  display: grid;
  grid-template-columns: 54px minmax(0, 1fr) minmax(90px, 22%);
  gap: 0 10px;
  min-height: 0;
}
.folded-pictures figure { display: flex; flex-direction: column; min-height: 0; margin: 0; }
.folded-pictures svg {
  display: block;
  flex: 1;
  width: 100%;
  min-height: 60px;
  border-bottom: 1px solid var(--line-strong);
  overflow: visible;
}
.folded-pictures path { vector-effect: non-scaling-stroke; }
.folded-grid { fill: none; stroke: var(--line); }
.folded-ribbon { fill: var(--raised); fill-rule: evenodd; }
.folded-line { fill: none; stroke: var(--faint); stroke-opacity: 0.3; }
.folded-last { fill: none; stroke: var(--accent); stroke-width: 1.75px; }
.folded-pictures figcaption {
  display: flex;
  flex: none;
  justify-content: space-between;
  height: 20px;
  padding-top: 3px;
  color: var(--dim);
  font-size: var(--small);
  white-space: nowrap;
}
.folded-key { color: var(--accent); }
.folded-ticks {
  position: relative;
  margin-bottom: 20px;
  color: var(--dim);
  font: 400 var(--small) / 1 var(--mono);
}
.folded-ticks span { position: absolute; right: 0; transform: translateY(-50%); }
.folded-steps { min-height: 0; overflow: auto; font-size: 12px; }
.folded-steps table { width: 100%; border-spacing: 0; }
.folded-steps thead th {
  position: sticky;
  top: 0;
  background: var(--surface);
  color: var(--dim);
  font-weight: 400;
}
.folded .folded-steps :is(th, td) { padding: 2px 6px; text-align: right; white-space: nowrap; }
.folded .folded-steps :is(th, td):first-child { text-align: left; }
.folded-steps td { font-family: var(--mono); }
.folded-steps tbody tr:hover { background: var(--hover); }
.folded-steps tr[aria-selected="true"] { background: var(--raised); }

@container (width < 1120px) {
  .folded { grid-template-columns: minmax(0, 1fr) 296px; gap: 8px 12px; }
}
@container (width < 760px) {
  .folded { grid-template: auto minmax(180px, 1fr) minmax(90px, auto) / minmax(0, 1fr); }
  .folded-steps { max-height: 220px; }
}
`;
