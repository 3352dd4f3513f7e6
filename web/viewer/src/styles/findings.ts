// Findings: the cards of their view, and lines elsewhere.

export const findings = `
.findings { flex: 1; min-height: 0; overflow: auto; container-type: inline-size; }
.findings-count { color: var(--dim); font-weight: 500; }
.findings > ul, .small-findings > ul {
  display: grid;
  gap: 10px;
  max-width: 1160px;
  padding: 12px 14px;
}
.finding {
  display: grid;
  grid-template: "head" auto "body" auto "chart" auto "tools" auto "more" auto / minmax(0, 1fr);
  gap: 6px 28px;
  padding: 12px 16px 8px;
  border: 1px solid var(--line);
  border-radius: var(--radius);
  background: var(--surface);
  box-shadow: inset 3px 0 var(--line-strong);
  cursor: pointer;
}
.finding[data-severity="high"] { --mark: var(--error); box-shadow: inset 3px 0 var(--error); }
.finding[data-severity="medium"] { --mark: var(--warn); box-shadow: inset 3px 0 var(--warn); }
.finding[data-severity="low"] { --mark: var(--dim); }
.finding:hover { border-color: var(--line-strong); }
.finding[data-chosen="true"] { border-color: var(--accent); }
.finding-head { display: flex; grid-area: head; gap: 4px 9px; align-items: baseline; }
.finding-head .severity { align-self: center; }
.finding-title { flex: 0 1 auto; min-width: 0; margin: 0; font: inherit; }
.finding-open {
  max-width: 100%;
  padding: 0;
  border: 0;
  border-radius: 3px;
  background: none;
  font-size: 14px;
  font-weight: 600;
  line-height: 19px;
  text-align: left;
  overflow-wrap: anywhere;
  cursor: pointer;
}
.finding-open:hover { text-decoration: underline; text-decoration-color: var(--faint); }
.finding-kind { flex: none; color: var(--dim); font-size: 12px; }
.finding-bytes { flex: none; margin-left: auto; font-weight: 600; }
.finding-body { grid-area: body; min-width: 0; max-width: 78ch; overflow-wrap: anywhere; }
.finding-text { color: var(--dim); text-wrap: pretty; }
.finding-text[data-cut="true"] {
  display: -webkit-box;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
  overflow: hidden;
}
.finding-more { margin-left: -2px; font-size: 12px; }
.finding-action { display: flex; gap: 7px; margin-top: 6px; }
.finding-action .icon {
  flex: none;
  width: 14px;
  height: 14px;
  margin-top: 3px;
  color: var(--accent);
}
.finding-actions { display: flex; flex-wrap: wrap; gap: 6px; margin: 8px 0 2px; }
.finding-actions .action-chip { height: auto; min-height: 24px; white-space: normal; }
.action-chip[data-still="true"] { cursor: inherit; }
.finding-place {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 10px;
  margin: 8px 0 0 -2px;
  color: var(--dim);
  font-size: 12px;
}
.finding-ranks { padding-left: 2px; }
.finding-place .path {
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.finding-tools {
  display: flex;
  grid-area: tools;
  flex-wrap: wrap;
  gap: 2px 6px;
  margin-left: -6px;
}
.finding-tools .button { font-size: 12px; }
.finding-tools .icon, .small-findings > .button .icon { width: 11px; height: 11px; }
.finding-more-rows { grid-column: 1 / -1; min-width: 0; padding-bottom: 6px; cursor: auto; }
.finding-block {
  display: grid;
  grid-template-columns: 72px minmax(0, 160px) minmax(0, auto);
  gap: 12px;
  width: 100%;
  padding: 3px 6px;
  border: 0;
  border-radius: 3px;
  background: none;
  font-size: 12px;
  text-align: left;
  cursor: pointer;
}
.finding-block:hover { background: var(--hover); }
.finding-block > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.finding-block > .num:first-child { text-align: right; }
.proof { grid-area: chart; align-self: start; width: 100%; max-width: 340px; margin: 4px 0 2px; }
.proof figcaption { margin-bottom: 2px; color: var(--dim); font-size: var(--small); }
.proof svg { display: block; width: 100%; height: auto; overflow: visible; }
.proof text { fill: var(--dim); font: 500 11px var(--sans); }
.proof text[data-strong="true"] { fill: var(--text); }
.proof path { fill: none; stroke: none; }
.proof [data-shape="axis"] { stroke: var(--line-strong); }
.proof [data-shape="value"] { fill: var(--segment); }
.proof [data-shape="marked"] { fill: var(--mark); }
.proof [data-shape="line"] { stroke: var(--text); stroke-dasharray: 3 3; }
.proof [data-shape="limit"] { stroke: var(--error); stroke-width: 1.5; }
.proof [data-shape="reserved"] { stroke: var(--band-reserved); stroke-width: 1.5; }
.proof [data-shape="request"] { stroke: var(--error); }
.proof [data-shape="request-hatch"] { stroke: var(--error); stroke-width: 1.5; }
.proof [data-shape="used"] { fill: var(--segment); }
.proof [data-shape="other"] { fill: var(--line-strong); }
.proof [data-shape="free"] { fill: var(--surface); stroke: var(--mark); }
.proof [data-shape="hatch"] { stroke: var(--mark); stroke-width: 1.5; }
.proof [data-shape="forward"] { fill: var(--phase-forward); }
.proof [data-shape="backward"] { fill: var(--phase-backward); }
.proof [data-shape="optimizer"] { fill: var(--phase-optimizer); }
.parts {
  display: grid;
  grid-template-columns: minmax(0, max-content) auto auto;
  gap: 1px 18px;
  width: fit-content;
  max-width: 100%;
  margin-top: 8px;
  padding-left: 10px;
  border-left: 2px solid var(--line);
  font-size: 12px;
}
.parts li { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; }
.part-site { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.parts-more { margin: 2px 0 0 10px; font-size: 12px; }
.severity { flex: none; line-height: 0; color: var(--faint); }
.severity rect { fill: var(--line-strong); }
.severity rect[data-on="true"] { fill: currentColor; }
[data-severity="high"] .severity { color: var(--error); }
[data-severity="medium"] .severity { color: var(--warn); }
.small-findings > .button { margin: 2px 8px; font-size: 12px; }
.small-findings .finding-open { color: var(--dim); font-size: var(--base); }
.blind-spots { max-width: 84ch; padding: 8px 14px 24px; color: var(--dim); font-size: 12px; }
.blind-spots summary { width: fit-content; padding: 2px 4px; border-radius: 3px; cursor: pointer; }
.blind-spots summary:hover { color: var(--text); }
.blind-spots li { position: relative; padding: 1px 0 1px 30px; }
.blind-spots li::before { content: "\\2013"; position: absolute; left: 18px; color: var(--faint); }
.quiet .blind-spots { padding: 20px 0 0; text-align: left; }
.outliers {
  flex: none;
  max-height: 104px;
  overflow: auto;
  padding: 4px 14px;
  border-bottom: 1px solid var(--line);
}
.finding-line {
  width: 100%;
  padding: 3px 6px 3px 12px;
  border: 0;
  background: none;
  box-shadow: inset 3px 0 var(--faint);
  text-align: left;
  overflow-wrap: anywhere;
  cursor: pointer;
}
.finding-line[data-severity="medium"] { box-shadow: inset 3px 0 var(--warn); }
.finding-line[data-severity="high"] { box-shadow: inset 3px 0 var(--error); }
.finding-line:hover { background: var(--hover); }
.finding-name { color: var(--text); font-weight: 500; }
.notable { margin-top: 16px; }
.notable .finding-line { margin: 3px 0; }
.notable .finding-line > span { display: block; }
.notable .finding-line .dim { font-size: var(--small); }
.notable .link { padding-left: 12px; font-size: var(--small); }

@container (width >= 700px) {
  .finding {
    grid-template: "head head" auto "body chart" auto "tools chart" 1fr "more more" auto
      / minmax(0, 1fr) auto;
  }
  .proof { width: 340px; }
}
@container (width < 520px) {
  .finding-head { flex-wrap: wrap; }
  .finding-title { flex: 1 1 80%; }
  .finding-kind { margin-left: 21px; }
}
`;
