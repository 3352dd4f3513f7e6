// Findings: the view, and lines elsewhere.

export const findings = `
.findings { flex: 1; min-height: 0; overflow: auto; container-type: inline-size; }
.finding {
  display: grid;
  grid-template:
    "mark kind title bytes" auto
    ". kind body body" 1fr / 12px 96px minmax(0, 1fr) auto;
  column-gap: 10px;
  align-items: baseline;
  padding: 12px 14px 13px;
  border-bottom: 1px solid var(--line);
  cursor: pointer;
}
.finding:hover { background: var(--hover); }
.finding .severity { grid-area: mark; align-self: start; margin-top: 3px; }
.finding-kind {
  grid-area: kind;
  color: var(--dim);
  font-size: 12px;
}
.finding-title { grid-area: title; min-width: 0; margin: 0; font: inherit; }
.finding-open {
  display: block;
  max-width: 100%;
  padding: 0;
  overflow: hidden;
  border: 0;
  border-radius: 3px;
  background: none;
  font-weight: 600;
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
  cursor: pointer;
}
.finding:hover .finding-open { text-decoration: underline; text-decoration-color: var(--faint); }
.finding-bytes { grid-area: bytes; font-weight: 600; }
.finding-body { grid-area: body; max-width: 80ch; overflow-wrap: anywhere; cursor: auto; }
.finding-text { margin-top: 3px; color: var(--dim); text-wrap: pretty; }
.finding-text[data-cut="true"] {
  display: -webkit-box;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 3;
  overflow: hidden;
}
.finding-more { margin-left: -2px; font-size: 12px; }
.finding-action { display: flex; gap: 7px; margin-top: 6px; }
.finding-action .icon {
    flex: none; width: 14px; height: 14px; margin-top: 3px; color: var(--accent);
  }
.finding-place {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 12px;
  margin: 6px 0 0 -2px;
  color: var(--dim);
  font-size: 12px;
}
.finding-place .path {
  min-width: 0;
  padding: 0 2px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.parts {
  display: grid;
  grid-template-columns: minmax(0, max-content) auto auto;
  gap: 1px 18px;
  width: fit-content;
  max-width: 100%;
  margin-top: 7px;
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
.blind-spots { max-width: 84ch; padding: 16px 14px 24px 36px; color: var(--dim); font-size: 12px; }
.blind-spots h4 { margin: 0 0 4px; font: inherit; font-weight: 500; }
.blind-spots li { position: relative; padding: 1px 0 1px 12px; }
.blind-spots li::before { content: "\\2013"; position: absolute; left: 0; color: var(--faint); }
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

@container (width < 620px) {
  .finding {
    grid-template: "mark kind bytes" auto ". title title" auto ". body body" auto
      / 12px minmax(0, 1fr) auto;
  }
  .finding-open { white-space: normal; }
  .blind-spots { padding-left: 36px; }
}
`;
