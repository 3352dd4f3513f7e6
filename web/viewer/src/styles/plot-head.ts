// Above the timeline: the legend, the lanes of steps and phases, and the strip of reserved bytes.

export const plotHead = `
.plot-head { position: relative; z-index: 3; container-type: inline-size; flex: none; }
.legend-line {
  --legend-row: 21px;
  display: flex;
  align-items: baseline;
  gap: 0 12px;
  min-height: 27px;
  padding: 3px 14px;
  color: var(--dim);
  font-size: var(--small);
}
.legend-entries, .legend-lines { display: flex; flex-wrap: wrap; gap: 0 2px; min-width: 0; }
@container (width < 560px) {
  .legend-line { flex-wrap: wrap; padding-inline: 10px; }
}
.legend-entries { margin-left: -6px; }
/* In a low window the plot needs the room. */
@media (height <= 760px) {
  /* One row: the largest come first, and the details list all. */
  .legend-line { flex-wrap: nowrap; height: 24px; min-height: 0; padding-block: 1px; }
  .legend-line { --legend-row: 19px; overflow: hidden; }
  .legend-line .legend-entries { max-height: var(--legend-row); overflow: hidden; }
  .legend-line .legend-entry { padding-inline: 5px; font-size: 11px; }
}
.legend-lines { margin: 0 -4px; }
.legend-entry {
  display: inline-flex;
  align-items: center;
  gap: 5px;
  max-width: 300px;
  height: var(--legend-row, 21px);
  padding: 0 6px;
  border: 0;
  border-radius: 4px;
  background: none;
  color: var(--dim);
  font-size: var(--small);
  white-space: nowrap;
}
button.legend-entry { cursor: pointer; }
button.legend-entry:hover { background: var(--hover); color: var(--text); }
.legend-label { min-width: 0; overflow: hidden; text-overflow: ellipsis; }
.legend-bytes { color: var(--text); font-family: var(--mono); }
.legend-entries [aria-pressed="true"] { background: var(--tint); color: var(--text); }
.legend-entries [data-quiet="true"] { opacity: 0.5; }
.legend-lines .line { width: 14px; height: 0; border-top: 2px solid; }
.legend-lines [aria-pressed="false"] { color: var(--faint); }
.legend-lines [aria-pressed="false"] .line { border-top-style: dotted; opacity: 0.6; }
.legend-lines .line[data-band="reserved"] { border-color: var(--band-reserved); }
.legend-lines .line[data-band="active"] { border-color: var(--band-active); }
.legend-lines .line[data-band="allocated"] { border-color: var(--band-allocated); }
.legend-lines .line[data-band="pools"] { border-color: var(--band-pools); }
.legend-lines .line[data-band="simulated"] { border-color: var(--band-simulated); }
@container timeline (width < 760px) {
  /* The placeholder says what the field is for. */
  .timeline .field.capacity > span { position: absolute; clip-path: inset(50%); }
  .mark[data-kind="request"] .mark-text { display: none; }
}
/* In a low pane the stack comes first. */
@container timeline (height < 340px) or ((width < 560px) and (height < 520px)) {
  .legend-line { flex-wrap: nowrap; height: 27px; overflow: hidden; }
  .legend-line .legend-entries { max-height: var(--legend-row); overflow: hidden; }
  .counter-lane { height: 26px; }
  .timeline .tracks:not(.phases) { display: none; }
}
@container timeline (height < 240px) {
  .plot-head, .timeline .strip { display: none; }
}
.legend-at { flex: none; color: var(--faint); font-family: var(--mono); }
.legend-ramp { display: flex; align-items: center; gap: 8px; font-family: var(--mono); }
.ramp { width: 160px; height: 8px; border-radius: 2px; }
.counter-lane {
  position: relative;
  height: 40px;
  margin: 0;
  padding-left: var(--left);
  border-top: 1px solid var(--line);
}
.counter-lane figcaption {
  position: absolute;
  top: 3px;
  left: 0;
  width: calc(var(--left) - 8px);
  color: var(--faint);
  font: 400 10px / 13px var(--sans);
  text-align: right;
}
.counter-lane figcaption span { display: block; font-family: var(--mono); white-space: nowrap; }
.counter-lane svg { display: block; width: var(--width); height: 100%; padding-top: 4px; }
.counter-fill { fill: var(--raised); }
.counter-line {
  fill: none;
  stroke: var(--band-reserved);
  stroke-width: 1.5;
  vector-effect: non-scaling-stroke;
}
/* The name is above the line: the room at the left has only the bytes. */
.free-lanes { flex: none; padding-bottom: 3px; border-bottom: 1px solid var(--line); }
/* In a low window the segments need the room. */
@media (height <= 600px) {
  .free-lanes { display: none; }
}
.counter-lane[data-kind="free"] { height: 33px; border-top: 0; }
.counter-lane[data-kind="free"] figcaption {
  left: var(--left);
  width: var(--width);
  text-align: left;
  white-space: nowrap;
}
.counter-lane[data-kind="free"] figcaption::before { content: "largest free, "; }
.counter-lane[data-kind="free"] figcaption span {
  position: absolute;
  top: 15px;
  right: calc(100% + 8px);
  color: var(--text);
}
.counter-lane[data-kind="free"] svg { padding-top: 16px; }
.counter-lane[data-kind="free"] .counter-line { stroke: var(--dim); stroke-width: 1; }
`;
