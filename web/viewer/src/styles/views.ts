// Styles of the views, which are loaded with their code.

import { compare } from "./compare.js";

/** Bars, tables, lists. */
const parts = `
.small.select, .small.segmented, .small.stepper { height: 22px; }
.small.select select { padding: 0 20px 0 7px; }
.small.select .icon { right: 6px; width: 10px; height: 10px; }
.small.segmented button { padding: 0 8px; }
.toggle, .chip {
  height: 22px;
  padding: 0 8px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: none;
  color: var(--dim);
  white-space: nowrap;
  cursor: pointer;
}
.toggle:hover, .chip:hover { color: var(--text); background: var(--hover); }
.toggle[aria-pressed="true"] {
  border-color: var(--accent);
  background: var(--tint);
  color: var(--text);
}
.chip { border-color: var(--accent); color: var(--text); }
.field {
  display: inline-flex;
  align-items: center;
  gap: 6px;
  color: var(--dim);
  white-space: nowrap;
}
.field input {
  height: 22px;
  width: 92px;
  padding: 0 7px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--surface);
  color: var(--text);
  font: inherit;
}
.field.capacity input { width: 118px; }
.field input[aria-invalid="true"] { border-color: var(--error); }
.field input::placeholder { color: var(--faint); opacity: 1; }
.legend {
  display: inline-flex;
  flex: none;
  align-items: center;
  gap: 2px 10px;
  min-width: 0;
  color: var(--dim);
  font-size: var(--small);
}
.legend li, .legend > span {
  display: inline-flex;
  align-items: center;
  gap: 5px;
  white-space: nowrap;
}
.legend .line { width: 14px; height: 0; border-top: 2px solid; margin-right: -5px; }
.legend .line[data-band="reserved"] { border-color: var(--band-reserved); }
.legend .line[data-band="active"] { border-color: var(--band-active); }
.legend .line[data-band="allocated"] { border-color: var(--band-allocated); }
.legend .line[data-band="pools"] { border-color: var(--band-pools); }
.legend .key { width: 10px; height: 10px; border-radius: 2px; margin-right: -5px; }
.legend .key[data-key="free"] { background: var(--segment); }
.legend .key[data-key="pending"] { background: var(--pending); }
.quiet { max-width: 62ch; margin: auto; padding: 24px; color: var(--dim); text-align: center; }
.quiet h3 { margin-bottom: 4px; color: var(--text); font-size: 15px; }
.num { font-family: var(--mono); font-size: 12px; text-align: right; white-space: nowrap; }
.error { color: var(--error); }
.sort {
  width: 100%;
  padding: 0;
  border: 0;
  background: none;
  color: inherit;
  font: inherit;
  text-align: inherit;
  white-space: nowrap;
  cursor: pointer;
}
.sort:hover { color: var(--text); }
[aria-sort="ascending"] > .sort::after { content: " \\2191" / ""; }
[aria-sort="descending"] > .sort::after { content: " \\2193" / ""; }
.overview, .anomalies, .blocks, .events, .segments, .flame {
  display: flex;
  flex-direction: column;
  flex: 1;
  min-height: 0;
  min-width: 0;
}
/* As wide as the header: only some rows of the body are rendered. */
.table {
  display: grid;
  grid-template: auto minmax(0, 1fr) / minmax(min-content, 1fr);
  flex: 1;
  min-height: 0;
  overflow: auto hidden;
  font-size: 12px;
}
.table-head, .table-row {
  display: grid;
  grid-template-columns: var(--columns);
  column-gap: 12px;
  padding: 0 14px;
}
.table-head {
  height: 26px;
  overflow: hidden;
  scrollbar-gutter: stable;
  align-items: center;
  border-bottom: 1px solid var(--line);
  color: var(--dim);
  font-size: var(--small);
}
.table-body { overflow: hidden auto; scrollbar-gutter: stable; contain: strict; }
.table-row { height: 24px; align-items: center; cursor: pointer; font-family: var(--mono); }
.table-row > div { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.table-row .swatch { display: inline-block; margin-right: 2px; }
.table [data-number="true"] { text-align: right; }
.table-row:hover { background: var(--hover); }
.table-row[aria-selected="true"] { background: var(--tint); }
.grid-scroll { flex: 1; min-height: 0; overflow: auto; }
.grid { width: 100%; border-collapse: collapse; font-size: 12px; }
.grid thead th {
  position: sticky;
  top: 0;
  z-index: 2;
  height: 26px;
  padding: 0 8px;
  background: var(--surface);
  box-shadow: inset 0 -1px var(--line);
  color: var(--dim);
  font-size: var(--small);
  font-weight: 400;
  text-align: left;
  white-space: nowrap;
}
.grid thead th[data-number="true"] { text-align: right; }
.ranks thead th:nth-child(2) { max-width: 120px; overflow: hidden; text-overflow: ellipsis; }
.grid tbody th { font-weight: 400; text-align: left; white-space: nowrap; }
.grid td, .grid tbody th { height: 28px; padding: 0 8px; border-bottom: 1px solid var(--line); }
.grid th:first-child { padding-left: 14px; }
.sheet {
  width: min(720px, calc(100cqw - 24px));
  max-height: min(680px, calc(100% - 24px));
  margin: auto;
  padding: 0;
  overflow: auto;
  border: 0;
  border-radius: 10px;
  background: var(--surface);
  color: var(--text);
  box-shadow: var(--shadow);
}
.sheet::backdrop { background: rgb(0 0 0 / 40%); }
.sheet-body { padding: 14px 20px 20px; }
.sheet-head {
  display: flex;
  align-items: center;
  justify-content: space-between;
  margin-bottom: 8px;
  font-size: 15px;
}
.sheet-columns { columns: 2 260px; column-gap: 32px; }
.sheet section { break-inside: avoid; margin-bottom: 16px; }
.sheet h3 { margin-bottom: 2px; color: var(--dim); font-size: var(--small); font-weight: 500; }
.sheet-row { display: flex; align-items: baseline; gap: 10px; padding: 3px 0; }
.sheet-row dt { flex: 0 0 104px; display: flex; flex-wrap: wrap; gap: 4px; }
kbd {
  padding: 1px 6px;
  border: 1px solid var(--line-strong);
  border-radius: 4px;
  background: var(--raised);
  font: 500 var(--small) / 1.4 var(--sans);
  white-space: nowrap;
}

.palette { width: min(560px, calc(100cqw - 24px)); margin-top: 72px; overflow: hidden; }
.palette[open] { display: flex; flex-direction: column; max-height: min(440px, calc(100% - 96px)); }
.palette input {
  flex: none;
  height: 44px;
  padding: 0 16px;
  border: 0;
  border-bottom: 1px solid var(--line);
  outline: 0;
  background: none;
  color: var(--text);
  font: inherit;
  font-size: 15px;
}
.palette [role="listbox"] { overflow: auto; padding: 6px; }
.command {
  display: flex;
  justify-content: space-between;
  gap: 12px;
  padding: 5px 10px;
  border-radius: var(--radius);
  cursor: pointer;
}
.command[aria-selected="true"] { background: var(--tint); }
.command:hover { background: var(--hover); }
`;

/** Overlays of plots. */
const pictures = `
.overlay { position: absolute; inset: 0; overflow: hidden; contain: strict; pointer-events: none; }
.overlay > * { position: absolute; top: 0; left: 0; }
.mark { pointer-events: none; }
/* Only the knob takes the pointer, because the line below it covers blocks. */
button.mark { padding: 0; border: 0; background: none; cursor: pointer; }
button.mark::after { pointer-events: auto; }
.mark[data-kind="cursor"] { width: 1px !important; background: var(--accent); z-index: 3; }
.mark[data-kind="cursor"] .mark-text {
  bottom: 0;
  left: 0;
  transform: translate(-50%, 0);
  background: var(--accent-solid);
  color: var(--on-accent);
}
.mark[data-kind="range"] {
  background: var(--tint);
  box-shadow: inset 1px 0 var(--accent), inset -1px 0 var(--accent);
}
.mark-text {
  position: absolute;
  padding: 1px 6px;
  border-radius: 4px;
  background: var(--raised);
  color: var(--text);
  font: 400 var(--small) / 1.4 var(--mono);
  white-space: nowrap;
}
.mark[data-kind="ruler-x"] {
  border-bottom: 1px solid var(--text);
  box-shadow: inset 1px 0 var(--text), inset -1px 0 var(--text);
}
.mark[data-kind="ruler-y"] {
  border-left: 1px solid var(--text);
  box-shadow: inset 0 1px var(--text), inset 0 -1px var(--text);
}
.mark[data-kind^="ruler"] .mark-text { top: 50%; left: 50%; transform: translate(-50%, -50%); }
.mark[data-kind="oom"], .mark[data-kind="finding"], .mark[data-kind="marker"] {
  width: 9px !important;
  margin-left: -4px;
}
.mark[data-kind="oom"]::before,
.mark[data-kind="finding"]::before,
.mark[data-kind="marker"]::before {
  content: "";
  position: absolute;
  inset: 0 auto 0 4px;
  border-left: 1px dashed var(--mark);
}
.mark[data-kind="oom"]::after,
.mark[data-kind="finding"]::after,
.mark[data-kind="marker"]::after {
  content: "";
  position: absolute;
  top: 0;
  left: 0;
  width: 9px;
  height: 9px;
  border-radius: 2px;
  background: var(--mark);
}
.mark[data-kind="oom"] { --mark: var(--error); z-index: 2; }
.mark[data-kind="finding"] { --mark: var(--warn); }
.mark[data-kind="finding"]::before { border-left-style: none; }
.mark[data-kind="finding"]::after { border-radius: 50%; }
.mark[data-kind="marker"] { --mark: var(--accent); z-index: 2; }
.mark[data-kind="capacity"] .mark-text { right: 4px; bottom: 3px; color: var(--warn); }
.mark[data-kind="name"] { display: flex; align-items: center; overflow: hidden; }
.mark[data-kind="name"] .mark-text {
  position: static;
  padding: 0 4px;
  background: none;
  color: #14181d;
  font-family: var(--sans);
  white-space: pre;
}
.draft { position: absolute; top: 0; left: 0; z-index: 4; }
.draft[data-kind="box"] { border: 1px solid var(--accent); background: var(--tint); }
.draft[data-kind="range"] {
  top: 8px;
  height: auto !important;
  bottom: 24px;
  transform-origin: 0 0;
  background: var(--tint);
  box-shadow: inset 1px 0 var(--accent), inset -1px 0 var(--accent);
  translate: none;
}
.rows-bar {
  position: absolute;
  top: 8px;
  right: 0;
  bottom: 24px;
  z-index: 3;
  width: 11px;
  overflow: hidden scroll;
  scrollbar-width: thin;
  scrollbar-color: var(--faint) transparent;
}
.names { z-index: 1; }
.flame-name {
  display: flex;
  padding: 0 4px;
  border: 0;
  background: none;
  color: #14181d;
  font: 400 var(--small) / 20px var(--sans);
  text-align: left;
  pointer-events: auto;
  cursor: pointer;
}
.flame-name > span {
  flex: none;
  max-width: 100%;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: pre;
}
.flame-name > .flame-place {
  flex: 0 1 auto;
  min-width: 0;
  font: 400 var(--small) / 20px var(--mono);
}
.flame-name:focus-visible { outline-offset: -2px; outline-color: var(--text); }
.segment-label {
  left: 0;
  padding: 0;
  border: 0;
  background: none;
  color: var(--faint);
  font: 400 10px / 1 var(--mono);
  text-align: right;
  overflow: hidden;
  white-space: nowrap;
  pointer-events: auto;
  cursor: pointer;
}
.segment-label:hover { color: var(--text); }
.rows-overlay .segment-label { width: 58px; }
.tracks {
  position: relative;
  contain: content;
  max-height: 62px;
  overflow: hidden auto;
  padding-left: var(--left);
}
.tracks-inner { position: relative; width: var(--width); margin: 3px 0; overflow: clip; }
.tracks-laid { position: relative; height: 100%; will-change: transform; }
.track {
  position: absolute;
  height: 14px;
  min-width: 1px;
  padding: 0;
  overflow: hidden;
  border: 0;
  border-radius: 2px;
  background: color-mix(in oklab, var(--hue) 30%, var(--surface));
  box-shadow: inset 2px 0 var(--hue);
  color: var(--text);
  font: 400 10px / 14px var(--sans);
  text-align: left;
  cursor: pointer;
}
.track span {
  display: block;
  padding: 0 4px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.minimap { contain: content; height: 61px; padding: 3px 0 5px var(--left); }
.tracks + .minimap { height: 40px; }
.minimap svg {
  display: block;
  width: var(--width);
  height: 100%;
  background: var(--sunk);
  border-radius: 2px;
  cursor: crosshair;
  touch-action: none;
}
.minimap-fill { fill: var(--line-strong); }
.minimap-line {
  fill: none;
  stroke: var(--faint);
  stroke-width: 1;
  vector-effect: non-scaling-stroke;
}
.minimap-out { fill: var(--veil); opacity: 0.62; }
.minimap-brush {
  fill: transparent;
  stroke: var(--accent);
  stroke-width: 1;
  vector-effect: non-scaling-stroke;
  cursor: grab;
}
.minimap-mark[data-kind="oom"] { fill: var(--error); }
.minimap-mark[data-kind="finding"] { fill: var(--warn); }
.minimap-cursor { fill: var(--accent); }
.breadcrumb {
  display: flex;
  align-items: baseline;
  justify-content: space-between;
  gap: 16px;
  flex: none;
  padding: 4px 14px;
  border-bottom: 1px solid var(--line);
  font-size: 12px;
  white-space: nowrap;
}
.breadcrumb ol { display: flex; min-width: 0; overflow: hidden; }
.breadcrumb li { min-width: 24px; overflow: hidden; text-overflow: ellipsis; }
.breadcrumb li + li::before { content: "\\203a"; padding: 0 5px; color: var(--faint); }
.matched { color: var(--dim); font-family: var(--mono); font-size: 12px; }
`;

/** Overview, findings, settings, details. */
const lists = `
.ranks .rank-line { cursor: pointer; }
.ranks .rank-line:hover { background: var(--hover); }
.ranks .rank-line[aria-selected="true"] {
  background: var(--raised);
  box-shadow: inset 2px 0 var(--accent);
}
.ranks .group { color: var(--faint); }
.bar-cell { position: relative; width: 44%; min-width: 180px; }
.bar-cell svg { display: block; width: 100%; height: 18px; }
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
.outliers {
  flex: none;
  max-height: 84px;
  overflow: auto;
  padding: 4px 14px;
  border-bottom: 1px solid var(--line);
}
.finding-line {
  width: 100%;
  padding: 2px 0 2px 12px;
  border: 0;
  background: none;
  box-shadow: inset 3px 0 var(--warn);
  text-align: left;
  cursor: pointer;
}
.finding-line[data-severity="high"] { box-shadow: inset 3px 0 var(--error); }
.notable { margin-top: 16px; }
.notable .finding-line { margin: 2px 0; }
.notable .num { margin-left: 6px; }
.finding-line:hover { background: var(--hover); }
.findings { flex: 1; min-height: 0; overflow: auto; }
.finding {
  display: block;
  width: 100%;
  padding: 9px 14px 10px;
  border: 0;
  border-bottom: 1px solid var(--line);
  background: none;
  text-align: left;
  cursor: pointer;
}
.finding:hover { background: var(--hover); }
.finding-head { display: flex; align-items: center; gap: 10px; }
.finding-head .path {
  margin-left: auto;
  font-size: var(--small);
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.finding-text {
  display: block;
  max-width: 110ch;
  margin-top: 2px;
  color: var(--dim);
  overflow-wrap: anywhere;
}
.severity {
  flex: none;
  min-width: 54px;
  padding: 0 6px;
  border-radius: 3px;
  background: var(--raised);
  color: var(--dim);
  font-size: 10px;
  line-height: 16px;
  text-align: center;
}
[data-severity="high"] .severity { background: var(--error-tint); color: var(--error); }
[data-severity="medium"] .severity { background: var(--warn-tint); color: var(--warn); }
.settings {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(300px, 1fr));
  gap: 8px 36px;
  flex: 1;
  min-height: 0;
  overflow: auto;
  padding: 12px 14px 24px;
  align-content: start;
}
.settings h3 { margin-bottom: 4px; color: var(--dim); font-size: var(--small); font-weight: 500; }
.settings code { font: 500 12px var(--mono); }
.setting { padding: 4px 0; }
.setting-value { color: var(--accent); }
.setting dd { color: var(--dim); }
.toggles { display: flex; flex-wrap: wrap; gap: 6px; }
.moment { margin-top: 18px; padding-top: 12px; border-top: 1px solid var(--line); }
.moment h3 { display: flex; justify-content: space-between; }
.moment h3 .link { font-weight: 400; }
.moment .mono { font-size: 12px; }
.notable .link { padding-left: 12px; font-size: var(--small); }
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
`;

export const style = [parts, pictures, lists, compare];
