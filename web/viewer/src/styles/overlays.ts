// Overlays of plots.
// It is long because every kind of mark has its rules, and they override each other in this order.

export const overlays = `
.overlay {
  position: absolute;
  inset: 0;
  container-type: inline-size;
  overflow: hidden;
  contain: strict;
  pointer-events: none;
}
.overlay > * { position: absolute; top: 0; left: 0; }
/* The cursor's flag covers labels of the axis. */
.overlay.marks { z-index: 2; }
.mark { pointer-events: none; }
/* Only the knob takes the pointer, because the line below it covers blocks. */
button.mark { padding: 0; border: 0; background: none; cursor: pointer; }
button.mark::after { pointer-events: auto; }
.mark[data-kind="cursor"] { width: 1px !important; background: var(--accent); z-index: 3; }
/* The flag is in the band of the axis, where it covers no block. */
.mark[data-kind="cursor"] .mark-text {
  top: calc(100% + 5px);
  left: 0;
  transform: translateX(
    clamp(0px - var(--at), -50%, 100cqw - var(--at) - 100%)
  );
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
.mark[data-kind="capacity"] .mark-text { left: 4px; bottom: 3px; color: var(--warn); }
/* Blocks that live through a break stay visible below it. */
.mark[data-kind="break"] {
  border-inline: 1px dashed var(--faint);
  background: repeating-linear-gradient(
    -55deg,
    color-mix(in srgb, var(--sunk), transparent 15%) 0 4px,
    color-mix(in srgb, var(--line-strong), transparent 35%) 4px 6px
  );
}
.mark[data-kind="break"] .mark-text {
  bottom: 2px;
  left: 50%;
  color: var(--dim);
  transform: translateX(-50%);
}
/* A failed request has no duration, so it is drawn before its event with a fixed width. */
.mark[data-kind="request"] {
  width: 26px !important;
  margin-left: -26px;
  border: 1px solid var(--error);
  background: repeating-linear-gradient(
    135deg,
    var(--error) 0 2px,
    color-mix(in srgb, var(--error), var(--sunk) 82%) 2px 7px
  );
  z-index: 1;
}
.mark[data-kind="request"] .mark-text {
  right: -1px;
  bottom: calc(100% + 4px);
  color: var(--error);
}
.mark[data-at-start="true"] .mark-text { right: auto; left: calc(100% + 8px); }
.marks:has([data-at-start="true"]) .mark[data-kind="capacity"] .mark-text {
  right: 4px;
  left: auto;
}
.plot:has([data-covers-peak="true"]) .peak-mark { display: none; }
.mark[data-kind="name"] { display: flex; align-items: center; overflow: hidden; }
.mark[data-kind="name"] .mark-text {
  position: static;
  padding: 0 4px;
  background: none;
  color: #14181d;
  font-family: var(--sans);
  white-space: pre;
}
.mark[data-kind="group"] {
  display: flex;
  align-items: center;
  justify-content: center;
  z-index: 1;
}
.mark[data-side="right"] { justify-content: flex-start; }
.mark[data-side="left"] { flex-direction: row-reverse; justify-content: flex-start; }
.mark[data-kind="group"] .swatch { flex: none; width: 3px; height: 11px; border-radius: 0; }
.mark[data-kind="group"] .mark-text {
  position: static;
  padding: 0 4px;
  background: none;
  color: #14181d;
  font-family: var(--sans);
  font-weight: 500;
  white-space: pre;
}
/* Beside its band a label is over other colors, so it has a ground of its own. */
.mark[data-kind="group"][data-side] .mark-text {
  padding: 2px 4px;
  border-radius: 3px;
  background: color-mix(in srgb, var(--surface) 88%, transparent);
  color: var(--text);
  line-height: 1;
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
.flame-name:has(> .flame-weight) > span:first-child { flex: 0 1 auto; min-width: 32px; }
.flame-name > .flame-place {
  flex: 0 1000 auto;
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
.segment-group {
  display: flex;
  align-items: flex-end;
  padding-bottom: 2px;
  color: var(--dim);
  font-size: var(--small);
  white-space: nowrap;
}
.segments-body { display: flex; flex: 1; min-height: 0; }
/* The rows begin below the heads of the columns. */
.segments-body:has(.segment-columns) > :first-child { margin-top: 19px; }
.segment-columns {
  position: relative;
  flex: none;
  width: 236px;
  overflow: hidden;
  border-left: 1px solid var(--line);
  background: var(--sunk);
  font: 400 var(--small) / 1 var(--mono);
}
.segment-use, .segment-columns-head {
  position: absolute;
  top: 0;
  right: 0;
  left: 0;
  display: grid;
  grid-template-columns: repeat(3, minmax(0, 1fr));
  gap: 8px;
  align-items: center;
  padding: 0 10px 0 6px;
  text-align: right;
  white-space: nowrap;
}
.segment-columns-head {
  z-index: 1;
  height: 18px;
  border-bottom: 1px solid var(--line);
  background: var(--sunk);
  color: var(--dim);
  font-family: var(--sans);
}
.segment-use { top: 19px; color: var(--dim); }
.segment-use [data-column="used"] { color: var(--text); }
.segment-use[data-group="true"] { align-items: flex-end; padding-bottom: 2px; font-weight: 600; }
.segment-columns-when {
  position: absolute;
  right: 10px;
  bottom: 7px;
  color: var(--faint);
}
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
/* Narrow ranges together: how much of the time they cover. */
.track[data-merged] {
  background: color-mix(
    in oklab,
    var(--hue) calc(6% + var(--density) * 30%),
    var(--surface)
  );
  box-shadow: none;
  color: var(--dim);
}
.track span {
  display: block;
  padding: 0 4px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.phases { padding-bottom: 2px; overflow: visible; contain: none; }
.phases .tracks-inner { margin: 0; }
.lane-label {
  position: absolute;
  left: 0;
  width: calc(var(--left) - 8px);
  overflow: hidden;
  color: var(--faint);
  font: 400 10px / 14px var(--sans);
  text-align: right;
  white-space: nowrap;
}
.phases .track {
  border-radius: 0;
  background: var(--phase-other);
  box-shadow: inset 1px 0 var(--surface);
  color: var(--phase-text);
}
.phases .track[data-phase=""] { background: var(--phase-mixed); }
.phases .track[data-phase="forward"] { background: var(--phase-forward); }
.phases .track[data-phase="evaluation"] { background: var(--phase-forward); }
.phases .track[data-phase="backward"] { background: var(--phase-backward); }
.phases .track[data-phase="optimizer"] { background: var(--phase-optimizer); }
.phases .track[data-phase="step"] { background: var(--phase-step); color: var(--dim); }
.phases .track[data-shaded] { background: var(--phase-shaded); }
/* A word that does not fit into the first line wraps into a line that is cut off. */
.track[data-merged] > span, .phases .track > span {
  height: 14px;
  padding: 0 4px;
  text-overflow: clip;
  white-space: normal;
}
.track[data-merged] > span::before, .phases .track > span::before { content: "\\200b"; }
.phases .track > span > span { display: inline-block; padding: 0; overflow: visible; }
.lane-tip {
  top: 100%;
  bottom: auto;
  max-width: none;
  white-space: nowrap;
  transform: translateX(clamp(0px, var(--x) - 50%, 100cqw - 100%));
}
.minimap { contain: content; height: 61px; padding: 3px 0 5px var(--left); }
.tracks + .minimap { height: 40px; }
@media (height <= 760px) {
  .tracks + .minimap, .minimap { height: 30px; }
}
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

@container (width < 1120px) {
  .segment-columns { width: 224px; }
}
@container (width < 760px) {
  .segment-columns { display: none; }
  .segments-body:has(.segment-columns) > :first-child { margin-top: 0; }
}
`;
