// The comparison. Its two colors are distinguishable with red-green color blindness.

export const compare = `
.app[data-theme="dark"] { --side-a: #56b4e9; --side-b: #f0a030; }
.app[data-theme="light"] { --side-a: #0069a8; --side-b: #c04a00; }
[data-side="A"] { --side: var(--side-a); }
[data-side="B"] { --side: var(--side-b); }
.compare { display: flex; flex-direction: column; flex: 1; min-height: 0; min-width: 0; }
.compare-side select { max-width: 220px; }
.compare-key {
  display: grid;
  place-items: center;
  width: 18px;
  height: 18px;
  border-radius: 4px;
  box-shadow: inset 0 0 0 1.5px var(--side);
  color: var(--side);
  font-weight: 600;
  font-size: var(--small);
}
.compare .segmented button:disabled { color: var(--faint); opacity: 0.55; cursor: default; }
.compare-add { margin: 14px 0; }
.compare-body {
  display: grid;
  flex: 1;
  min-height: 0;
  grid-template: minmax(170px, 38%) minmax(0, 1fr) / fit-content(492px) minmax(0, 1fr);
}
.compare-curves {
  grid-column: 1 / -1;
  display: flex;
  flex-direction: column;
  min-height: 0;
  min-width: 0;
  margin: 0;
  padding: 8px 14px 10px;
  border-bottom: 1px solid var(--line);
}
.compare-curves figcaption {
  display: flex;
  flex: none;
  flex-wrap: wrap;
  align-items: center;
  gap: 2px 16px;
  padding-bottom: 8px;
}
.compare-curves .legend { margin-left: auto; }
.compare-curves .legend .line { margin-right: 0; border-color: var(--side); }
/* Labels of y are in the margin, so that curves start at the left edge. */
.compare-plot {
  position: relative;
  flex: 1;
  min-height: 0;
  margin: 0 0 20px 58px;
  border-bottom: 1px solid var(--line-strong);
}
.compare-difference { position: relative; flex: none; height: 42px; margin: 4px 0 0 58px; }
.compare-difference svg { display: block; width: 100%; height: 100%; }
.compare-difference path { fill: var(--side); opacity: 0.75; }
.compare-difference > span {
  position: absolute;
  color: var(--dim);
  font: 400 var(--small) / 14px var(--mono);
  white-space: nowrap;
}
.compare-difference-name { top: 50%; right: 100%; padding-right: 8px; translate: 0 -50%; }
.compare-difference > .compare-zero { right: 0; left: 0; border-top: 1px solid var(--line-strong); }
.compare-difference > [data-at] {
  right: 2px;
  padding: 0 3px;
  border-radius: 3px;
  background: color-mix(in srgb, var(--surface) 78%, transparent);
  color: var(--text);
}
.compare-difference > [data-at="most"] { top: 0; }
.compare-difference > [data-at="least"] { bottom: 0; }
.compare-plot svg {
  position: absolute;
  inset: 0;
  display: block;
  width: 100%;
  height: 100%;
  overflow: visible;
}
.compare-plot path {
  fill: none;
  stroke: var(--side);
  stroke-width: 1.5;
  vector-effect: non-scaling-stroke;
}
.compare-y {
  position: absolute;
  right: 0;
  left: 0;
  border-bottom: 1px solid var(--line);
  pointer-events: none;
}
.compare-y > span {
  position: absolute;
  right: 100%;
  bottom: -7px;
  padding-right: 8px;
  color: var(--dim);
  font: 400 var(--small) / 14px var(--mono);
  white-space: nowrap;
}
.compare-y:first-child { border-color: transparent; }
.compare-x {
  position: absolute;
  top: 100%;
  padding: 3px 0 0 4px;
  border-left: 1px solid var(--line-strong);
  color: var(--dim);
  font: 400 var(--small) / 14px var(--mono);
  white-space: nowrap;
}
.compare-x[data-last="true"] {
  padding: 3px 4px 0 0;
  border-width: 0 1px 0 0;
  border-right: 1px solid var(--line-strong);
  transform: translateX(-100%);
}
.compare-body[data-picture="tree"] { grid-template-rows: minmax(210px, 46%) minmax(0, 1fr); }
.compare-flame {
  grid-column: 1 / -1;
  display: flex;
  flex-direction: column;
  min-height: 0;
  min-width: 0;
  border-bottom: 1px solid var(--line);
}
.compare-scale { gap: 8px; color: var(--dim); font-size: var(--small); }
.compare-scale-colors { display: inline-flex; height: 10px; border-radius: 2px; overflow: hidden; }
.compare-scale-colors > span { width: 16px; }
/* A long path takes a line of its own. */
.compare-flame .breadcrumb { flex-wrap: wrap; gap: 2px 16px; }
.compare-flame .breadcrumb > span { margin-left: auto; text-align: right; white-space: normal; }
.compare-totals {
  min-height: 0;
  overflow: auto;
  scrollbar-gutter: stable;
  border-right: 1px solid var(--line);
}
.compare-totals td, .compare-totals thead th { padding: 0 5px; }
.compare-totals td, .compare-totals tbody th { height: 24px; border-bottom: 0; color: var(--dim); }
.compare-totals tr[data-strong="true"] > * { color: var(--text); }
.compare-totals tr[data-strong="true"] > th { font-weight: 500; }
.compare-totals tbody tr:not([data-none="true"]) > [data-column="change"] {
  color: var(--text);
  font-weight: 500;
}
.compare-totals tbody th:first-child, .compare-totals thead th:first-child { padding-left: 14px; }
.compare-totals td:last-child, .compare-totals thead th:last-child { padding-right: 14px; }
.compare-totals .compare-heading th {
  height: 30px;
  padding-top: 6px;
  border-top: 1px solid var(--line);
  color: var(--dim);
  font-size: var(--small);
}
.compare-totals tr[hidden] { display: none; }
.compare-totals .compare-fold td { padding-left: 12px; }
.compare-recording { border-bottom: 1px solid var(--line); table-layout: fixed; }
.compare-totals .compare-recording :is(td, tbody th) {
  height: auto;
  padding-block: 3px;
  overflow-wrap: anywhere;
  white-space: normal;
  vertical-align: top;
}
.compare-recording td { font: 400 12px / 1.45 var(--mono); }
.compare-groups { display: flex; flex: 1 0 100%; flex-wrap: wrap; gap: 5px; }
.compare-groups:empty { display: none; }
.compare-stacks .toolbar > .compare-groups { flex: 1 0 100%; }
.compare-findings { padding: 8px 14px 14px; color: var(--dim); }
.grid + .compare-findings { border-top: 1px solid var(--line); }
.compare-findings li { padding: 5px 0; overflow-wrap: anywhere; }
.compare-side { font-size: var(--small); }
.compare-findings strong { color: var(--text); font-weight: 500; }
.compare-findings li[data-new="true"] strong { color: var(--warn); }
.compare-stacks {
  display: flex;
  flex-direction: column;
  min-height: 0;
  min-width: 0;
  container-type: inline-size;
}
.compare-stacks .field input { width: 170px; }
.compare-stacks .table-row > [data-column="change"] { position: relative; }
.compare-bar {
  position: absolute;
  right: 0;
  bottom: 1px;
  left: 0;
  height: 2px;
  border-radius: 1px;
  background: var(--side);
  transform: scaleX(var(--share));
  transform-origin: 100% 0;
}
/* Columns that the details repeat are hidden in favor of the call site. */
@container (width < 620px) {
  .compare-stacks :is(.table-head, .table-row) {
    grid-template-columns: 86px minmax(100px, 1fr) 74px 74px;
  }
  .compare-stacks :is(.table-head, .table-row) > :nth-child(n + 5) { display: none; }
}
/* Next to rail and details, percentages are in tooltips only, to leave room for call sites. */
@container (1120px <= width < 1500px) {
  .compare-body { grid-template-columns: fit-content(424px) minmax(0, 1fr); }
  .compare-totals [data-column="percent"] { display: none; }
  .compare-totals :is(td, th)[data-column="change"] { padding-right: 14px; }
}
@container (width < 1120px) {
  .compare-x[data-last="true"] { display: none; }
  .compare-body { grid-template: 240px max-content 340px / minmax(0, 1fr); overflow: auto; }
  .compare-body[data-picture="tree"] { grid-template-rows: 340px max-content 340px; }
  .compare-totals { border-right: 0; border-bottom: 1px solid var(--line); overflow: auto hidden; }
}
@container (width < 560px) {
  .compare-totals [data-column="percent"] { display: none; }
  .compare-totals :is(td, th)[data-column="change"] { padding-right: 14px; }
}
`;
