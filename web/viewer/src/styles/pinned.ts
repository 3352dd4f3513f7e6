// Curves of pinned ranks below the timeline.

export const pinned = `
.pinned {
  flex: 0 1 auto;
  min-height: 92px;
  max-height: 60%;
  overflow: auto;
  border-top: 1px solid var(--line);
}
.timeline:has(.pinned) > .plot { min-height: 110px; }
.pinned-head {
  display: flex;
  justify-content: space-between;
  gap: 12px;
  padding: 3px 14px 1px;
  font-size: var(--small);
  white-space: nowrap;
}
.pinned-head .dim { min-width: 0; overflow: hidden; text-overflow: ellipsis; }
.pinned-head .link { flex: none; }
.pinned-lane { position: relative; height: 72px; margin: 0; padding-left: var(--left); }
.pinned-lane + .pinned-lane { border-top: 1px solid var(--line); }
.pinned-open {
  display: block;
  width: var(--width);
  height: 100%;
  padding: 4px 0 0;
  border: 0;
  background: none;
  cursor: pointer;
}
.pinned-open:hover { background: var(--hover); }
.pinned-open svg { display: block; width: 100%; height: 100%; overflow: hidden; }
.pinned-fill { fill: var(--accent); fill-opacity: 0.35; }
.pinned-main {
  fill: none;
  stroke: var(--text);
  stroke-opacity: 0.6;
  stroke-width: 1;
  vector-effect: non-scaling-stroke;
}
.pinned-cursor {
  position: absolute;
  top: 0;
  bottom: 0;
  left: calc(var(--left) + var(--at) * var(--width));
  width: 1px;
  background: var(--accent);
  pointer-events: none;
}
.pinned-lane figcaption {
  position: absolute;
  top: 4px;
  left: 0;
  width: calc(var(--left) - 8px);
  color: var(--faint);
  font: 400 10px / 12px var(--sans);
  text-align: right;
}
.pinned-lane figcaption :is(b, span) { display: block; overflow: hidden; white-space: nowrap; }
.pinned-lane figcaption b {
  color: var(--text);
  font-size: var(--small);
  line-height: 15px;
  text-overflow: ellipsis;
}
.pinned-lane figcaption span { color: var(--dim); font-family: var(--mono); }
.pinned-note {
  position: absolute;
  top: 4px;
  right: 30px;
  padding: 0 5px;
  border-radius: 3px;
  background: var(--veil);
  color: var(--dim);
  font-size: var(--small);
}
.pinned-close {
  position: absolute;
  top: 3px;
  right: 4px;
  height: 20px;
  min-width: 20px;
  padding: 0 4px;
}
.pinned-close .icon { width: 10px; height: 10px; }
.pin-mark { flex: none; display: none; color: var(--faint); cursor: pointer; }
.pin-mark .icon { width: 13px; height: 13px; }
.pin-mark:hover { color: var(--text); }
.rank:hover .pin-mark { display: block; }
.pin-mark[data-pinned="true"] { display: block; color: var(--accent); }
.app[data-rail="header"] .pin-mark { display: none; }
.rank .pin-mark + .rail-mark { margin-left: 0; }
`;
