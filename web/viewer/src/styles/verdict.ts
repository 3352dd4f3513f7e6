// The verdict above the views. Its height is the same before and after the answer, so that nothing
// below it moves.

export const verdict = `
/* The share of a category's color in its part of the bar, which has text on it. */
.app[data-theme="dark"] { --part-share: 42%; }
.app[data-theme="light"] { --part-share: 58%; }
.verdict {
  flex: none;
  display: grid;
  gap: 6px;
  align-content: space-between;
  height: 31px;
  padding: 1px 6px 0 14px;
  overflow: hidden;
  border-bottom: 1px solid var(--line);
  box-shadow: inset 3px 0 transparent;
}
.verdict[data-open="true"] { height: 146px; gap: 4px; padding-block: 5px 6px; }
.verdict[data-open="true"][data-actions="false"] { height: 118px; }
.verdict[data-severity="high"] {
  background: color-mix(in srgb, var(--error) 9%, var(--surface));
  box-shadow: inset 3px 0 var(--error);
}
.verdict[data-severity="medium"] { box-shadow: inset 3px 0 var(--warn); }
.verdict-head { display: flex; align-items: center; gap: 8px; min-width: 0; height: 26px; }
.verdict-line {
  flex: 1;
  min-width: 0;
  overflow: hidden;
  font-weight: 600;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.verdict[data-open="true"] .verdict-head { height: auto; min-height: 24px; }
.verdict[data-open="true"] .verdict-line {
  max-height: 38px;
  font-size: 14px;
  line-height: 19px;
  white-space: normal;
}
.noun {
  padding: 0;
  border: 0;
  border-radius: 2px;
  background: none;
  font-weight: inherit;
  text-decoration: underline;
  text-decoration-color: var(--faint);
  text-decoration-thickness: 1px;
  text-underline-offset: 3px;
  cursor: pointer;
}
.noun:hover { text-decoration-color: currentColor; }
.verdict-tools { display: flex; flex: none; margin-left: auto; }
.verdict .button.plain { height: 24px; font-size: 12px; }
.verdict .button.plain .icon { width: 12px; height: 12px; }
.verdict-actions { display: flex; align-items: center; gap: 6px; min-width: 0; height: 26px; }
.verdict-second { display: flex; align-items: center; gap: 12px; min-width: 0; }
.verdict-detail {
  flex: 1;
  min-width: 0;
  height: 18px;
  margin-right: 8px;
  overflow: hidden;
  color: var(--dim);
  text-overflow: ellipsis;
  white-space: nowrap;
}
.action-chip {
  display: inline-flex;
  flex: 0 1 auto;
  gap: 7px;
  min-width: 60px;
  height: 24px;
  padding: 0 9px;
  overflow: hidden;
  border: 1px solid var(--line-strong);
  border-radius: 5px;
  background: var(--surface);
  font-size: 12px;
  line-height: 22px;
  white-space: nowrap;
  cursor: pointer;
}
.action-chip:hover { border-color: var(--faint); background: var(--hover); }
.action-text { overflow: hidden; text-overflow: ellipsis; }
.action-value { flex: none; color: var(--accent); font-weight: 600; }
.action-chip[data-helps="false"], .action-chip[data-helps="false"] .action-value {
  color: var(--dim);
  font-weight: 400;
}
.memory-bar { min-width: 0; min-height: 38px; margin-right: 8px; }
.memory-parts { position: relative; height: 20px; }
.memory-part {
  position: absolute;
  top: 0;
  bottom: 0;
  padding: 0;
  overflow: hidden;
  border: 0;
  border-radius: 0;
  container-type: inline-size;
  background: color-mix(in oklab, var(--part, var(--faint)) var(--part-share), var(--surface));
  box-shadow: inset 0 3px var(--part, var(--faint)), inset -1px 0 var(--surface);
  color: var(--text);
  font: 500 11px / 22px var(--sans);
  text-align: center;
  white-space: nowrap;
}
button.memory-part { cursor: pointer; }
button.memory-part:hover { filter: brightness(1.15); }
.memory-part[data-part="rounding"], .memory-part[data-part="small"] {
  background: var(--line-strong);
}
.memory-part[data-part="idle"], .memory-part[data-part="graph_pools"] {
  background: var(--surface);
  box-shadow: inset 0 0 0 1px var(--faint);
}
.memory-part[data-part="stuck"] {
  background: repeating-linear-gradient(
    135deg, var(--line-strong) 0 3px, var(--surface) 3px 6px
  );
  box-shadow: inset 0 0 0 1px var(--faint);
}
.memory-part[data-part="device_free"] {
  background: var(--surface);
  box-shadow: inset 0 0 0 1px var(--line-strong);
}
.memory-part[data-part="outside"] { background: var(--line-strong); }
.memory-label { display: none; pointer-events: none; }
.memory-name { display: none; }
.memory-part[data-part="stuck"] .memory-label {
  padding: 0 4px;
  border-radius: 2px;
  background: var(--surface);
}
@container (width >= 58px) { .memory-label { display: inline; } }
@container (width >= 150px) { .memory-name { display: inline; } }
/* These have long names. */
@container (width < 190px) {
  :is([data-part="device_free"], [data-part="graph_pools"], [data-part="outside"]) .memory-name {
    display: none;
  }
}
.memory-capacity {
  position: absolute;
  top: -3px;
  bottom: -10px;
  width: 2px;
  margin-left: -1px;
  background: var(--error);
}
.memory-scale { position: relative; height: 16px; margin-top: 2px; }
.memory-request {
  position: absolute;
  top: 0;
  height: 7px;
  border: 1px solid var(--error);
  background: repeating-linear-gradient(
    135deg, var(--error) 0 2px, transparent 2px 5px
  );
}
.memory-words {
  position: absolute;
  left: 0;
  max-width: 100%;
  overflow: hidden;
  color: var(--dim);
  font-size: var(--small);
  line-height: 16px;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.verdict[data-open="false"] .memory-bar { min-height: 0; margin: -6px 0 0; }
.verdict[data-open="false"] .memory-parts { height: 4px; }
.verdict[data-open="false"] .memory-scale,
.verdict[data-open="false"] .memory-capacity { display: none; }
@container (width < 760px) {
  .verdict { height: 50px; }
  .verdict[data-open="true"] { height: auto; min-height: 50px; padding-bottom: 6px; }
  .verdict-head { height: 44px; }
  .verdict[data-open="true"] .verdict-head { height: auto; }
  .verdict-line {
    display: -webkit-box;
    -webkit-box-orient: vertical;
    -webkit-line-clamp: 2;
    line-height: 1.35;
    white-space: normal;
  }
  .verdict[data-open="true"] .verdict-line {
    display: block;
    max-height: none;
    font-size: var(--base);
  }
  .verdict-actions, .verdict-second { flex-wrap: wrap; height: auto; }
  .verdict[data-open="true"][data-actions="false"] { height: auto; }
  .verdict-second > .verdict-detail { flex-basis: 100%; }
  .action-chip { flex: 1 1 auto; }
  .verdict-detail { height: auto; margin-top: 0; white-space: normal; }
}
`;
