// Bars, tables, sheets and the command palette.

export const tables = `
.small.select, .small.segmented, .small.stepper { height: 22px; }
.small.select select { padding: 0 20px 0 7px; }
.small.select .icon { right: 6px; width: 10px; height: 10px; }
.small.segmented button { padding: 0 8px; }
.toggle, .chip {
  height: 22px;
  padding: 0 8px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: none;
  color: var(--dim);
  white-space: nowrap;
  cursor: pointer;
}
.toggle:hover, .chip:hover { color: var(--text); background: var(--hover); }
.toggle[aria-pressed="true"] {
  border-color: var(--accent);
  background: var(--tint);
  color: var(--text);
}
.chip { border-color: var(--accent); color: var(--text); }
.field {
  display: inline-flex;
  align-items: center;
  gap: 6px;
  color: var(--dim);
  white-space: nowrap;
}
.field input {
  height: 22px;
  width: 92px;
  padding: 0 7px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--surface);
  color: var(--text);
  font: inherit;
}
.field.capacity input { width: 118px; }
.field input[aria-invalid="true"] { border-color: var(--error); }
.field input::placeholder { color: var(--faint); opacity: 1; }
.legend {
  display: inline-flex;
  flex: none;
  flex-wrap: wrap;
  align-items: center;
  gap: 2px 10px;
  min-width: 0;
  color: var(--dim);
  font-size: var(--small);
}
.legend li, .legend > span {
  display: inline-flex;
  align-items: center;
  gap: 5px;
  white-space: nowrap;
}
.legend .line { width: 14px; height: 0; border-top: 2px solid; margin-right: -5px; }
.legend .line[data-band="reserved"] { border-color: var(--band-reserved); }
.legend .line[data-band="active"] { border-color: var(--band-active); }
.legend .line[data-band="allocated"] { border-color: var(--band-allocated); }
.legend .line[data-band="pools"] { border-color: var(--band-pools); }
.legend .line[data-band="simulated"] { border-color: var(--band-simulated); }
.legend .key { width: 10px; height: 10px; border-radius: 2px; margin-right: -5px; }
.legend .key {
  background: repeating-linear-gradient(
    135deg,
    var(--of) 0 2px,
    color-mix(in srgb, var(--of), var(--sunk) 50%) 2px 4px
  );
}
.legend .key[data-key="free"] { --of: var(--segment); }
.legend .key[data-key="pending"] { --of: var(--dim); }
.quiet { max-width: 62ch; margin: auto; padding: 24px; color: var(--dim); text-align: center; }
.quiet h3 { margin-bottom: 4px; color: var(--text); font-size: 15px; }
.num { font-family: var(--mono); font-size: 12px; text-align: right; white-space: nowrap; }
.error { color: var(--error); }
.sort {
  width: 100%;
  padding: 0;
  border: 0;
  background: none;
  color: inherit;
  font: inherit;
  text-align: inherit;
  white-space: nowrap;
  cursor: pointer;
}
.sort:hover { color: var(--text); }
[aria-sort="ascending"] > .sort::after { content: " \\2191" / ""; }
[aria-sort="descending"] > .sort::after { content: " \\2193" / ""; }
.overview, .findings-view, .blocks, .events, .segments, .flame {
  display: flex;
  flex-direction: column;
  flex: 1;
  min-height: 0;
  min-width: 0;
}
/* As wide as the header: only some rows of the body are rendered. */
.table {
  display: grid;
  grid-template: auto minmax(0, 1fr) / minmax(min-content, 1fr);
  flex: 1;
  min-height: 0;
  overflow: auto hidden;
  font-size: 12px;
}
.table-head, .table-row {
  display: grid;
  grid-template-columns: var(--columns);
  column-gap: 12px;
  padding: 0 14px;
}
.table-head {
  height: 26px;
  overflow: hidden;
  scrollbar-gutter: stable;
  align-items: center;
  border-bottom: 1px solid var(--line);
  color: var(--dim);
  font-size: var(--small);
}
.table-body { overflow: hidden auto; scrollbar-gutter: stable; contain: strict; }
.table-row { height: 24px; align-items: center; cursor: pointer; font-family: var(--mono); }
.table-row > div { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.table-row .swatch { display: inline-block; margin-right: 2px; }
.table [data-number="true"] { text-align: right; }
.table-row:hover { background: var(--hover); }
.table-row[aria-selected="true"] { background: var(--tint); }
.grid-scroll { flex: 1; min-height: 0; overflow: auto; }
.grid { width: 100%; border-collapse: collapse; font-size: 12px; }
.grid thead th {
  position: sticky;
  top: 0;
  z-index: 2;
  height: 26px;
  padding: 0 8px;
  background: var(--surface);
  box-shadow: inset 0 -1px var(--line);
  color: var(--dim);
  font-size: var(--small);
  font-weight: 400;
  text-align: left;
  white-space: nowrap;
}
.grid thead th[data-number="true"] { text-align: right; }
.ranks thead th:nth-child(2) { max-width: 120px; overflow: hidden; text-overflow: ellipsis; }
.grid tbody th { font-weight: 400; text-align: left; white-space: nowrap; }
.grid td, .grid tbody th { height: 28px; padding: 0 8px; border-bottom: 1px solid var(--line); }
.grid th:first-child { padding-left: 14px; }
.grid > .chunk:empty { display: block; height: calc(var(--rows) * 28px); }
.sheet {
  width: min(720px, calc(100cqw - 24px));
  max-height: min(680px, calc(100% - 24px));
  margin: auto;
  padding: 0;
  overflow: auto;
  border: 0;
  border-radius: 10px;
  background: var(--surface);
  color: var(--text);
  box-shadow: var(--shadow);
}
.sheet::backdrop { background: rgb(0 0 0 / 40%); }
.sheet-body { padding: 14px 20px 20px; }
.sheet-head {
  display: flex;
  align-items: center;
  justify-content: space-between;
  margin-bottom: 8px;
  font-size: 15px;
}
.sheet-columns { columns: 2 260px; column-gap: 32px; }
.sheet section { break-inside: avoid; margin-bottom: 16px; }
.sheet h3 { margin-bottom: 2px; color: var(--dim); font-size: var(--small); font-weight: 500; }
.sheet-row { display: flex; align-items: baseline; gap: 10px; padding: 3px 0; }
.sheet-row dt { flex: 0 0 104px; display: flex; flex-wrap: wrap; gap: 4px; }
.sheet.report { width: min(520px, calc(100cqw - 24px)); padding: 16px 20px; }
.report h2 { margin: 0 0 6px; font-size: 15px; }
.report .quiet { padding: 0; text-align: start; }
.report ul {
  margin: 6px 0 12px;
  padding-left: 18px;
  list-style: disc;
  overflow-wrap: anywhere;
}
.report li { margin: 2px 0; }
.report-end { display: flex; gap: 8px; align-items: center; margin-top: 16px; }
.report-end span {
  flex: 1;
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
kbd {
  padding: 1px 6px;
  border: 1px solid var(--line-strong);
  border-radius: 4px;
  background: var(--raised);
  font: 500 var(--small) / 1.4 var(--sans);
  white-space: nowrap;
}

.palette { width: min(560px, calc(100cqw - 24px)); margin-top: 72px; overflow: hidden; }
.palette[open] { display: flex; flex-direction: column; max-height: min(440px, calc(100% - 96px)); }
.palette input {
  flex: none;
  height: 44px;
  padding: 0 16px;
  border: 0;
  border-bottom: 1px solid var(--line);
  outline: 0;
  background: none;
  color: var(--text);
  font: inherit;
  font-size: 15px;
}
.palette [role="listbox"] { overflow: auto; padding: 6px; }
.command {
  display: flex;
  justify-content: space-between;
  gap: 12px;
  padding: 5px 10px;
  border-radius: var(--radius);
  cursor: pointer;
}
.command[aria-selected="true"] { background: var(--tint); }
.command:hover { background: var(--hover); }
`;
