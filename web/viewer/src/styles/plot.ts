// The timeline: toolbar, canvas, labels, tooltip, warnings.

export const plot = `
.timeline {
  display: flex;
  flex-direction: column;
  flex: 1;
  min-height: 0;
  container: timeline / size;
}
.view-header {
  display: flex;
  align-items: baseline;
  gap: 10px;
  flex: none;
  min-width: 0;
  padding: 9px 14px 7px;
  border-bottom: 1px solid var(--line);
  white-space: nowrap;
}
.view-header h2 { font-size: 13px; }
.view-header > .dim { overflow: hidden; text-overflow: ellipsis; }
.facts {
  display: flex;
  flex: none;
  gap: 16px;
  margin-left: auto;
  font-family: var(--mono);
  font-size: 12px;
  white-space: nowrap;
}
.plot { position: relative; flex: 1; min-height: 0; overflow: hidden; background: var(--sunk); }
.surface { position: absolute; inset: 0; }
.plot canvas {
  position: absolute;
  inset: 0;
  width: 100%;
  height: 100%;
  display: block;
  touch-action: none;
  cursor: default;
}
.plot canvas:focus-visible { outline-width: 1px; outline-offset: -1px; }
.plot canvas[data-dragging] { cursor: grabbing; }
.axis, .cursor { position: absolute; inset: 0; pointer-events: none; }
.axis { z-index: 1; contain: strict; color: var(--faint); font: 400 var(--small) / 1 var(--mono); }
.tick-x, .tick-y { position: absolute; top: 0; left: 0; white-space: nowrap; }
.tick-y { transform: translate(calc(var(--x) - 8px - 100%), calc(var(--y) - 50%)); }
.tick-x { transform: translate(calc(var(--x) - 50%), calc(var(--y) + 8px)); }
.peak-mark {
  position: absolute;
  top: 0;
  left: 0;
  height: 20px;
  padding: 0 6px;
  border: 1px solid var(--line-strong);
  border-radius: 4px;
  background: var(--surface);
  color: var(--text);
  line-height: 18px;
  white-space: nowrap;
  transform: translate(var(--x), var(--y));
}
.cursor {
  right: auto;
  bottom: auto;
  width: 1px;
  height: var(--height);
  background: var(--accent);
  opacity: 0.55;
  transform: translate(var(--x), var(--y));
}
.tooltip {
  position: absolute;
  top: 0;
  left: 0;
  z-index: 10;
  max-width: min(360px, 92%);
  padding: 7px 10px 8px;
  border-radius: var(--radius);
  background: var(--surface);
  box-shadow: var(--shadow);
  pointer-events: none;
  font-size: 12px;
  overflow-wrap: anywhere;
}
/* The text of the previous block stays until the answer comes, and fades if that takes long. */
.tooltip[data-stale="true"] > * { opacity: 0.35; transition: opacity 80ms linear 80ms; }
.tooltip-title { display: flex; align-items: center; gap: 7px; font-weight: 600; font-size: 13px; }
.tooltip .mono { font-size: var(--small); }
.plot-state {
  position: absolute;
  inset: 0;
  display: grid;
  place-items: center;
  padding: 20px;
  background: var(--sunk);
  text-align: center;
}
.plot-state > div { width: min(460px, 100%); overflow-wrap: anywhere; }
.plot-state h3 { margin-bottom: 4px; font-size: 15px; }
.words p::first-letter { text-transform: uppercase; }
.words p + p { margin-top: 6px; }
.words .words-action { margin-top: 14px; }
/* The drawer does not repeat a message of the center. */
.panes:has(.pane[data-place="main"] :is(.words-action, [data-unread="true"]))
  .pane[data-place="drawer"] .words > p,
.plot:has([data-unread="true"]) + .strip {
  display: none;
}
.panes:has(.pane[data-place="main"] :is(.words-action, [data-unread="true"]))
  .pane[data-place="drawer"] .words h3 {
  color: var(--dim);
  font-weight: 400;
  font-size: inherit;
}
.sketch { margin: 18px 0 0; }
.sketch svg { display: block; width: 100%; height: 90px; }
.sketch path { fill: var(--line-strong); }
.sketch figcaption { margin-top: 4px; font-size: var(--small); }
.plot-state .bar { width: 180px; margin: 10px auto 0; }
.warnings {
  flex: none;
  max-height: 40%;
  overflow: auto;
  border-top: 1px solid var(--line);
  font-size: 12px;
}
.warnings summary {
  display: flex;
  align-items: center;
  gap: 8px;
  padding: 6px 14px;
  cursor: pointer;
  white-space: nowrap;
  list-style: none;
}
.warnings summary::-webkit-details-marker { display: none; }
.warnings summary:hover { background: var(--hover); }
.warnings .icon { flex: none; width: 14px; height: 14px; color: var(--warn); }
.warnings-first { min-width: 0; overflow: hidden; text-overflow: ellipsis; }
.warnings[open] .warnings-first { visibility: hidden; }
.warnings li { padding: 3px 14px 3px 36px; overflow-wrap: anywhere; }
.warnings ul { padding-bottom: 8px; }

@container (width < 1120px) {
  .view-header > .dim { display: none; }
}
@container (width < 1120px) {
  .facts .dim { display: none; }
}
`;
