// A to B: totals and tables of what came, went and stayed, and the marks of both moments.

export const ab = `
.ab { display: flex; flex: 1; flex-direction: column; min-height: 0; container: ab / inline-size; }
.ab-ends { flex-wrap: wrap; }
.ab-end { display: inline-flex; align-items: center; gap: 6px; min-width: 0; }
.ab-end .mono { overflow: hidden; font-size: 12px; text-overflow: ellipsis; white-space: nowrap; }
.ab-flag {
  flex: none;
  width: 17px;
  border-radius: 4px;
  background: var(--text);
  color: var(--surface);
  font: 600 var(--small) / 16px var(--sans);
  text-align: center;
}
.ab-body {
  display: grid;
  flex: 1;
  grid-template: auto minmax(0, 1fr) / minmax(470px, 2fr) minmax(440px, 3fr);
  gap: 8px 24px;
  min-height: 0;
  padding: 8px 14px 10px;
}
.ab-totals { display: flex; grid-column: 1 / -1; flex-wrap: wrap; gap: 4px 36px; }
.ab-totals li { display: grid; font-size: var(--small); }
.ab-totals b { font: 600 16px / 1.3 var(--mono); }
.ab-totals .change-key { margin-right: 2px; }
.change-key {
  display: inline-block;
  flex: none;
  width: 10px;
  height: 10px;
  border-radius: 2px;
  background: var(--of);
  vertical-align: -1px;
}
.change-key[data-hatched="true"] {
  background: repeating-linear-gradient(
    135deg,
    var(--of) 0 2px,
    color-mix(in srgb, var(--of), var(--sunk) 50%) 2px 4px
  );
}
.ab-table { min-height: 0; overflow: auto; font-size: 12px; }
.ab-table table { width: 100%; border-spacing: 0; table-layout: fixed; }
.ab-table :is(th, td) { padding: 0 6px; height: 23px; text-align: right; white-space: nowrap; }
.ab-table :is(th, td):not(:first-child) { width: 80px; }
.ab-table :is(th, td):last-child { width: 90px; }
.ab-table :is(th, td):first-child { padding-left: 0; text-align: left; }
.ab-table thead th {
  position: sticky;
  top: 0;
  z-index: 1;
  background: var(--surface);
  box-shadow: inset 0 -1px var(--line);
  color: var(--dim);
  font-size: var(--small);
  font-weight: 400;
}
.ab-table tbody th { font-weight: 400; }
.ab-table td { position: relative; font-family: var(--mono); }
.ab-table td[data-none="true"] { color: var(--faint); }
.ab-table tbody tr:hover { background: var(--hover); }
.ab-table tr[aria-selected="true"] { background: var(--tint); }
.ab-table > .dim { padding: 4px 0; }
.ab-name {
  display: flex;
  align-items: center;
  gap: 7px;
  width: 100%;
  height: 22px;
  padding: 0 2px;
  border: 0;
  background: none;
  text-align: left;
  cursor: pointer;
}
.ab-name > :last-child { overflow: hidden; text-overflow: ellipsis; }
.ab-bar {
  position: absolute;
  right: 6px;
  bottom: 1px;
  height: 2px;
  max-width: calc(100% - 12px);
  border-radius: 1px;
  background: var(--error);
}
.ab-bar[data-less="true"] { background: var(--accent); }
.mark[data-kind="end"] {
  width: 1px !important;
  background: var(--text);
  z-index: 3;
}
.mark[data-kind="end"] .mark-text {
  top: 0;
  left: 50%;
  min-width: 18px;
  padding: 0 5px;
  background: var(--text);
  color: var(--surface);
  font: 600 var(--small) / 17px var(--sans);
  text-align: center;
  transform: translateX(-50%);
  cursor: ew-resize;
  pointer-events: auto;
  touch-action: none;
}
.map-changes { display: flex; flex-wrap: wrap; gap: 2px 14px; }

@container ab (width < 940px) {
  .ab-body { display: block; overflow: auto; }
  .ab-totals { gap: 4px 22px; margin-bottom: 8px; }
  .ab-table { overflow: visible; margin-bottom: 14px; }
  .ab-table thead th { position: static; }
}
@container ab (width < 480px) {
  .ab-table td { font-size: 11px; }
  .ab-table :is(th, td):not(:first-child) { width: 67px; padding-inline: 3px; }
  .ab-table :is(th, td):last-child { width: 74px; }
  .ab-bar { right: 3px; max-width: calc(100% - 6px); }
  .ab-totals { gap: 4px 16px; }
  .ab-totals b { font-size: 14px; }
}
`;
