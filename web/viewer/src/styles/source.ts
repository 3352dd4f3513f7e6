// Source with the memory of each line.

export const source = `
.source {
  container: source / inline-size;
  display: flex;
  flex: 1;
  flex-direction: column;
  min-width: 0;
  min-height: 0;
}
.source-head {
  display: flex;
  flex: none;
  align-items: center;
  gap: 8px;
  min-height: 34px;
  padding: 0 14px;
  border-bottom: 1px solid var(--line);
}
.source-head h3 { flex: none; font-size: 12px; }
.source-path {
  flex: 1;
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  color: var(--dim);
  font: 400 var(--small) / 1.5 var(--mono);
}
.source-head .button { flex: none; height: 24px; gap: 6px; }
.source-head .button .icon { width: 13px; height: 13px; }
.source-notes {
  flex: none;
  max-width: 130ch;
  padding: 6px 14px;
  color: var(--dim);
  font-size: 12px;
}
.source-body { display: flex; flex: 1; min-height: 0; }
.source-body .table { flex: 1; min-width: 0; }
.source-places {
  flex: 0 0 224px;
  padding: 4px 8px 12px 12px;
  overflow: auto;
  border-right: 1px solid var(--line);
}
.source-places h4 {
  margin: 6px 0 0;
  color: var(--dim);
  font-size: var(--small);
  font-weight: 400;
}
.source-places .shares { margin: 0 0 8px; }
.source-places .share-bar { background: var(--accent); opacity: 0.5; }
.source .table-row { column-gap: 10px; height: 24px; }
.source .table-head { column-gap: 10px; }
.source .table-row > [data-column="peak"],
.source .table-row > [data-column="cursor"],
.source .table-row > [data-column="growth"] {
  position: relative;
  display: grid;
  align-self: stretch;
  align-content: center;
}
.source-bar {
  position: absolute;
  right: 0;
  bottom: 2px;
  height: 2px;
  border-radius: 1px;
  background: var(--accent);
  opacity: 0.6;
}
.source .table-row > [data-column="line"] { color: var(--faint); }
.source .table-row > [data-column="blocks"] { color: var(--dim); }
.source-mark { float: left; color: var(--warn); cursor: help; }
.source-mark[data-state="unsure"] { color: var(--faint); }
.source-text { font: inherit; white-space: pre; tab-size: 4; }
.source-text[data-bare="true"] { color: var(--dim); }
.source-text[data-state="differs"] { color: var(--warn); }
.source-in { color: var(--faint); font-style: italic; }
@container source (width < 820px) {
  .source-body { flex-direction: column; }
  .source-places {
    display: grid;
    grid-template-columns: 1fr 1fr;
    grid-template-rows: auto auto;
    grid-auto-flow: column;
    gap: 0 16px;
    flex: none;
    max-height: 30%;
    border-right: 0;
    border-bottom: 1px solid var(--line);
  }
}
@container source (width < 560px) {
  .source-path { display: none; }
  .source-head h3 { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; }
  .source-head .button { font-size: 0; gap: 0; }
}
`;
