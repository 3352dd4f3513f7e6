// Overview, settings, details.

export const lists = `
.ranks .rank-line { cursor: pointer; }
.ranks .rank-line:hover { background: var(--hover); }
.ranks .rank-line[aria-selected="true"] {
  background: var(--raised);
  box-shadow: inset 2px 0 var(--accent);
}
.ranks .group { color: var(--faint); }
.bar-cell { position: relative; width: 44%; min-width: 180px; }
.bar-cell svg { display: block; width: 100%; height: 18px; }
.bar-cell [data-category] { cursor: pointer; }
.bar-cell [data-category]:hover { filter: brightness(1.15); }
.bar-cell [data-chosen="false"] { opacity: 0.3; }
.bar-reserved { fill: var(--segment); }
.rank-line[data-outlier="true"] th .link { color: var(--warn); }
.spark { width: 150px; }
.spark svg { display: block; width: 140px; height: 22px; }
.spark path { fill: var(--faint); opacity: 0.75; }
.badge {
  display: inline-block;
  margin: 0 6px;
  padding: 0 5px;
  border-radius: 3px;
  background: var(--error-tint);
  color: var(--error);
  font: 600 10px / 15px var(--sans);
}
.badge[data-severity="medium"] { background: var(--warn-tint); color: var(--warn); }
.rail-bar {
  position: absolute;
  right: 14px;
  bottom: 3px;
  left: 12px;
  height: 3px;
  overflow: visible;
}
.rail-bar svg { display: block; width: 100%; height: 3px; }
.rail-mark {
  order: -1;
  flex: none;
  width: 6px;
  height: 6px;
  border-radius: 50%;
  background: var(--warn);
}
.rail-mark[data-severity="high"] { background: var(--error); }
.settings {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr));
  gap: 8px 36px;
  flex: 1;
  min-height: 0;
  overflow: auto;
  padding: 12px 14px 24px;
  align-content: start;
}
.settings h3 { margin-bottom: 4px; color: var(--dim); font-size: var(--small); font-weight: 500; }
.settings code { font: 500 12px var(--mono); }
.setting { padding: 4px 0; overflow-wrap: anywhere; }
.setting-value { color: var(--accent); }
.setting dd { color: var(--dim); }
.toggles { display: flex; flex-wrap: wrap; gap: 6px; }
.moment { margin-top: 18px; padding-top: 12px; border-top: 1px solid var(--line); }
.moment h3 { display: flex; justify-content: space-between; }
.moment h3 .link { font-weight: 400; }
.moment .mono { font-size: 12px; }
.moment > .link { margin-top: 6px; font-size: var(--small); }
.details h4 { margin: 12px 0 2px; color: var(--dim); font-size: var(--small); font-weight: 500; }
.shares { margin-top: 4px; }
.share {
  position: relative;
  display: flex;
  align-items: baseline;
  justify-content: space-between;
  gap: 8px;
  width: 100%;
  padding: 2px 4px;
  border: 0;
  border-radius: 3px;
  background: none;
  text-align: left;
  font-size: 12px;
}
button.share { cursor: pointer; }
button.share:hover { background: var(--hover); }
.share-bar { position: absolute; bottom: 0; left: 0; height: 2px; border-radius: 1px; }
.share-text { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.share-site {
  display: -webkit-box;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
  overflow: hidden;
  overflow-wrap: anywhere;
  white-space: normal;
}
.share-via {
  display: block;
  overflow: hidden;
  color: var(--dim);
  font-size: var(--small);
  text-overflow: ellipsis;
}
.share .num { flex: none; }
.copy-line { margin-top: 10px; }
.plot-state:has(> .part-form) { overflow: auto; place-items: safe center; padding-block: 12px; }
.plot-state > .part-form {
  width: min(680px, 100%);
  padding: 22px 24px 24px;
  border: 1px solid var(--line);
  border-radius: 10px;
  background: var(--surface);
  text-align: left;
  overflow-wrap: anywhere;
}
.plot:has(> .plot-state > .part-form) + .strip { display: none; }
.part-form p + p { margin-top: 2px; }
.part-form figure { margin: 18px 0 0; }
.part-form svg {
  display: block;
  width: 100%;
  height: 132px;
  border-radius: var(--radius);
  background: var(--sunk);
  box-shadow: inset 0 0 0 1px var(--line);
  cursor: crosshair;
  touch-action: none;
}
.part-form svg path { fill: var(--line-strong); }
.part-mark {
  fill: var(--tint);
  stroke: var(--accent);
  stroke-width: 1.5px;
  vector-effect: non-scaling-stroke;
}
.part-form figcaption {
  display: flex;
  flex-wrap: wrap;
  justify-content: space-between;
  gap: 2px 16px;
  margin-top: 6px;
  font-size: var(--small);
}
.part-fields {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 10px 18px;
  margin-top: 18px;
}
.part-fields .field input { width: 116px; height: 30px; font-family: var(--mono); }
.part-fields .field input:invalid { border-color: var(--error); }
.part-fields .button { margin-left: auto; }
.part-line {
  display: flex;
  flex: none;
  align-items: baseline;
  gap: 12px;
  padding: 5px 14px;
  border-bottom: 1px solid var(--line);
  background: var(--warn-tint);
  font-size: 12px;
  overflow-wrap: anywhere;
}
.part-line .link { flex: none; margin-left: auto; white-space: nowrap; }

@container (width < 1120px) {
  .bar-cell { width: 36%; min-width: 110px; }
  .ranks th:last-child, .spark { display: none; }
}
@container (width < 760px) {
  .bar-cell { min-width: 90px; }
  /* The form takes the place of views that have nothing to show. */
  .panes:has(.part-form) { grid-template-rows: 34px minmax(0, 1fr) 0 0 0; }
  .panes:has(.part-form) > :is(.splitter, .tabs[data-for="drawer"], .pane[data-place="drawer"]) {
    display: none;
  }
}
@container (width < 480px) {
  .ranks.grid :is(th, td) { padding-inline: 2px; font-size: var(--small); }
  .ranks.grid thead th:nth-child(2) { max-width: 84px; }
  .ranks.grid tr > :nth-child(6) { padding-right: 12px; }
  .ranks.grid .bar-cell { width: auto; min-width: 60px; }
  .ranks.grid th:first-child { padding-left: 12px; }
}
`;
