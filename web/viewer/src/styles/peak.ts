// The peak lens: its sentence, the events around the peak, and the treemap.

export const peak = `
.peak {
  display: flex;
  flex: 1;
  flex-direction: column;
  min-height: 0;
  container: peak / inline-size;
}
.peak-head {
  display: flex;
  flex: none;
  flex-wrap: wrap;
  align-items: center;
  gap: 4px 2px;
  padding: 6px 14px 6px 8px;
  border-bottom: 1px solid var(--line);
}
.peak-head .icon { width: 12px; height: 12px; }
.peak-head p { flex: 1 1 420px; min-width: 0; margin: 0 8px; }
.peak-list { display: flex; flex-wrap: wrap; gap: 4px; margin-left: 6px; }
.peak-choice {
  height: 24px;
  padding: 0 8px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: none;
  font-size: var(--small);
  white-space: nowrap;
  cursor: pointer;
}
.peak-choice:hover { background: var(--hover); }
.peak-choice[aria-pressed="true"] { border-color: transparent; background: var(--tint); }
.peak-body {
  display: grid;
  flex: 1;
  grid-template: minmax(0, 1fr) / minmax(300px, 2fr) 3fr;
  min-height: 0;
}
.peak-events { display: flex; flex-direction: column; min-width: 0; padding: 10px 0 0 14px; }
.peak-picture {
  display: grid;
  flex: none;
  grid-template-columns: auto 9px minmax(0, 1fr) 9px;
  gap: 0 3px;
  height: clamp(90px, 34%, 260px);
  padding-right: 14px;
}
.peak-picture > svg { display: block; width: 100%; height: 100%; overflow: hidden; }
.peak-picture > svg:not(.peak-cut) { background: var(--sunk); }
.peak-cut path { fill: none; stroke: var(--faint); }
.peak-ticks {
  display: flex;
  flex-direction: column;
  justify-content: space-between;
  padding-right: 4px;
  color: var(--dim);
  font-size: var(--small);
  line-height: 1;
  text-align: right;
}
.peak-ground { fill: transparent; }
.peak-at { fill: var(--tint); }
.peak-bar { cursor: pointer; }
.peak-bar[data-pointed="true"] .peak-ground { fill: var(--hover); }
.peak-bar[data-selected="true"] .peak-fill { stroke: var(--text); stroke-width: 2px; }
.peak-fill { fill: currentColor; vector-effect: non-scaling-stroke; }
.peak-bar[data-frees="true"] .peak-fill {
  fill-opacity: 0.3;
  stroke: currentColor;
  stroke-width: 1px;
}
.peak-break {
  display: flex;
  flex: none;
  justify-content: space-between;
  padding: 3px 14px 6px 0;
  font-size: var(--small);
}
.peak-rows { flex: 1; min-height: 0; overflow: auto; border-top: 1px solid var(--line); }
.peak-row {
  display: grid;
  grid-template-columns: 62px 82px minmax(0, 1fr) 112px;
  gap: 8px;
  align-items: center;
  width: 100%;
  height: 22px;
  padding: 0 10px 0 4px;
  border: 0;
  background: none;
  font-size: 12px;
  text-align: left;
  cursor: pointer;
}
.peak-row:is(:hover, [data-pointed="true"]) { background: var(--hover); }
.peak-row[data-peak="true"] { background: var(--tint); }
.peak-row[aria-pressed="true"] { box-shadow: inset 2px 0 var(--accent); }
.peak-row .num { text-align: right; }
.peak-row b { color: var(--accent); font-weight: 600; }
.peak-site { display: flex; align-items: center; gap: 6px; min-width: 0; white-space: nowrap; }
.peak-site > :last-child { overflow: hidden; text-overflow: ellipsis; }
.peak-live { display: flex; flex-direction: column; min-width: 0; padding: 8px 14px 12px; }
.peak-live-head {
  display: flex;
  flex: none;
  align-items: center;
  justify-content: space-between;
  gap: 10px;
  margin-bottom: 6px;
  font-size: var(--small);
}
.peak-live-head .segmented { height: 22px; }
.treemap-box { position: relative; flex: 1; min-height: 0; }
.treemap { position: absolute; inset: 0; overflow: hidden; }
.treemap button {
  position: absolute;
  display: flex;
  flex-direction: column;
  align-items: flex-start;
  overflow: hidden;
  padding: 0;
  border: 0;
  text-align: left;
  font-size: var(--small);
  line-height: 14px;
  white-space: nowrap;
  cursor: pointer;
}
.treemap-ground {
  position: absolute;
  border-radius: 3px;
  background: color-mix(in srgb, var(--of), var(--surface) 70%);
}
.treemap .treemap-category {
  flex-direction: row;
  gap: 8px;
  border-radius: 3px;
  background: none;
  color: var(--text);
}
.treemap-category .treemap-name {
  max-width: 100%;
  padding: 1px 0 0 4px;
  overflow: hidden;
  font-weight: 600;
  text-overflow: ellipsis;
}
.treemap-category .treemap-bytes { padding-top: 1px; }
.treemap-site { border-radius: 1px; background: var(--of); color: #14181d; }
/* Dark text is readable on all categories. */
.app[data-theme="light"] .treemap-site { background: color-mix(in srgb, var(--of), white 30%); }
.treemap-site[data-quiet="true"] { opacity: 0.3; }
.treemap-site:hover { filter: brightness(1.08); }
.treemap button[aria-pressed="true"] { box-shadow: inset 0 0 0 2px var(--text); }
.treemap button:focus-visible { outline-offset: -2px; z-index: 1; }
.treemap-site svg { position: absolute; inset: 0; }
.treemap-site path { fill: none; stroke: #14181d; stroke-opacity: 0.22; }
.treemap-site span {
  position: relative;
  max-width: 100%;
  padding: 0 4px;
  overflow: hidden;
  text-overflow: ellipsis;
}
.treemap-site > span:first-of-type { padding-top: 1px; }
.treemap-bytes { font-family: var(--mono); }
.treemap-tip {
  left: clamp(0px, var(--x) + 14px, 100% - 220px);
  top: clamp(0px, var(--y) + 16px, 100% - 70px);
  max-width: 300px;
}
.treemap-table { height: 100%; }
.treemap-table tr[data-depth="0"] th { font-weight: 600; }
.treemap-table tr[data-depth="1"] .ab-name { padding-left: 18px; }

@container peak (width < 760px) {
  .peak-row { grid-template-columns: 56px 74px minmax(0, 1fr) 70px; gap: 5px; }
  .peak-row b { display: none; }
}
@container peak (640px <= width < 760px) {
  .peak-row { grid-template-columns: 56px 74px minmax(0, 1fr); }
  .peak-row > :last-child { display: none; }
}
@container peak (width < 640px) {
  .peak-head p { flex-basis: calc(100% - 90px); }
  .peak-body { display: block; overflow: auto; }
  .peak-events { padding-right: 0; }
  .peak-picture { height: 130px; }
  .peak-rows { flex: none; height: 198px; border-bottom: 1px solid var(--line); }
  .peak-live { height: 380px; }
}
`;
