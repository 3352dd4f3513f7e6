// The center: tabs, view, splitter, drawer.

export const panes = `
.panes {
  display: grid;
  grid-template:
    "tabs" 34px
    "main" minmax(0, 1fr)
    "split" 0
    "drawer-tabs" 30px
    "drawer" 0 / minmax(0, 1fr);
  flex: 1;
  min-height: 0;
}
.panes[data-drawer="true"] {
  /* A viewer without height has no room for a view, so that its canvas draws nothing. */
  grid-template-rows:
    34px minmax(min(120px, 100%), calc((1 - var(--drawer-size)) * 100% - 64px))
    0 30px minmax(0, 1fr);
}
.tabs {
  display: flex;
  align-items: center;
  gap: 8px;
  min-width: 0;
  padding: 0 6px 0 8px;
  border-bottom: 1px solid var(--line);
}
.tabs[data-for="main"] { grid-area: tabs; }
.tabs[data-for="drawer"] { grid-area: drawer-tabs; border-top: 1px solid var(--line); }
.panes[data-drawer="false"] .tabs[data-for="drawer"] { border-bottom: 0; }
.tabs .facts, .tabs > .button { margin-left: auto; }
.tabs[data-for="drawer"] .menu-panel { top: auto; bottom: calc(100% + 4px); }
.tabs .menu-button { height: 26px; padding: 0 9px; }
.tabs > .button { height: 24px; }
.tablist { display: flex; flex: none; align-self: stretch; }
.tabs[data-tight="true"] .facts { position: absolute; visibility: hidden; }
.tab {
  position: relative;
  padding: 0 9px;
  border: 0;
  background: none;
  color: var(--dim);
  white-space: nowrap;
  cursor: pointer;
}
.tabs[data-for="drawer"] .tab { font-size: 12px; }
.tab:hover { color: var(--text); }
.tab[aria-selected="true"] { color: var(--text); }
.tab[aria-selected="true"]::after {
  content: "";
  position: absolute;
  right: 9px;
  bottom: -1px;
  left: 9px;
  height: 2px;
  border-radius: 1px;
  background: var(--accent);
}
.count {
  display: inline-block;
  min-width: 16px;
  margin-left: 4px;
  padding: 0 4px;
  border-radius: 8px;
  background: var(--warn-tint);
  color: var(--warn);
  font-size: 10px;
  line-height: 15px;
  text-align: center;
}
.pane { display: flex; flex-direction: column; min-width: 0; min-height: 0; overflow: hidden; }
.pane[data-place="main"] { grid-area: main; }
.pane[data-place="drawer"] { grid-area: drawer; }
.pane[data-place="none"] { display: none; }
.splitter {
  grid-area: split;
  position: relative;
  z-index: 5;
  height: 7px;
  margin-top: -4px;
  cursor: row-resize;
  touch-action: none;
}
.splitter:hover, .splitter:focus-visible {
  background: linear-gradient(transparent 3px, var(--accent) 3px 5px, transparent 5px);
  outline: 0;
}
.panes[data-drawer="false"] .splitter { display: none; }
/* What does not fit into one line wraps into the next: nothing in a toolbar is out of sight. */
.toolbar {
  display: flex;
  flex: none;
  flex-wrap: wrap;
  align-items: center;
  gap: 4px 12px;
  min-height: 34px;
  padding: 3px 14px;
  border-bottom: 1px solid var(--line);
  font-size: 12px;
  white-space: nowrap;
}
.toolbar > * { flex: none; max-width: 100%; }
.toolbar-end { display: inline-flex; align-items: center; gap: 2px; margin-left: auto; }
.toolbar .button { height: 24px; gap: 4px; font-size: 12px; }
.toolbar .icon { width: 13px; height: 13px; }
.strip { position: relative; container-type: inline-size; flex: none; min-height: 62px;
  border-top: 1px solid var(--line); }

@container (width < 1120px) {
  .tab { padding-inline: 7px; }
  .tab[aria-selected="true"]::after { right: 7px; left: 7px; }
}
@container (width < 760px) {
  .timeline .toolbar { flex-wrap: wrap; gap: 4px 8px; height: auto; padding-block: 4px; }
  .timeline .toolbar-end .icon { display: none; }
  .timeline .field.capacity input { width: 98px; }
  .tabs[data-for="main"] { flex-wrap: nowrap; }
  .tabs .facts { padding-right: 4px; font-size: 11px; }
}
`;
