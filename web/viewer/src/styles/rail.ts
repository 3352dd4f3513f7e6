// The list of ranks: a column, or a horizontal strip with one row or in a narrow element.

export const rail = `
.rail {
  display: flex;
  flex-direction: column;
  min-height: 0;
  min-width: 0;
  border-right: 1px solid var(--line);
}
.rail-title { flex: none; padding: 9px 14px 7px; font-size: 12px; }
.rail-progress { float: right; color: var(--dim); font-weight: 400; }
.rail-list { flex: 1; min-height: 0; overflow: auto; padding-bottom: 8px; }
.rail-list > .chunk:empty { height: calc(var(--rows) * 28px); }
.rail-skipped {
  flex: none;
  margin: 0;
  padding: 6px 14px 8px;
  color: var(--dim);
  font-size: var(--small);
}
.rail-group {
  overflow: hidden;
  padding: 8px 14px 2px;
  color: var(--faint);
  font-size: var(--small);
  text-overflow: ellipsis;
  white-space: nowrap;
}
.rank {
  position: relative;
  display: flex;
  align-items: center;
  gap: 8px;
  min-height: 28px;
  padding: 2px 14px 2px 12px;
  border-left: 2px solid transparent;
  cursor: pointer;
}
.rank:hover { background: var(--hover); }
.rank[aria-selected="true"] { border-left-color: var(--accent); background: var(--raised); }
.rank-label {
  flex: 0 1 auto;
  min-width: 12px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  font-family: var(--mono);
  font-size: 12px;
}
.rank-label .middle-cut > :last-child { flex: 0 0 auto; }
.rank-peak, .rank-note { flex: none; margin-left: auto; white-space: nowrap; font-size: 12px; }
.rank-peak { font-family: var(--mono); color: var(--dim); }
.rank[aria-selected="true"] .rank-peak { color: var(--text); }
.rank-note { color: var(--faint); font-size: var(--small); }
.rank-error {
  flex: 1 1 100%;
  display: -webkit-box;
  overflow: hidden;
  color: var(--error);
  font-size: var(--small);
  line-height: 1.35;
  overflow-wrap: anywhere;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
}
.rank[data-state="error"] { flex-wrap: wrap; row-gap: 0; padding-block: 5px; }
.dot {
  flex: none;
  width: 6px;
  height: 6px;
  margin-left: auto;
  border-radius: 50%;
  background: var(--warn);
}
.dot + .rank-peak, .dot + .rank-note { margin-left: 0; }
.rank .bar { position: absolute; right: 14px; bottom: 2px; left: 12px; }

.app[data-rail="header"] .run {
  position: absolute;
  overflow: hidden;
  width: 1px;
  height: 1px;
  clip-path: inset(50%);
}
.app[data-rail="header"] .rail { min-width: 0; border: 0; }
.app[data-rail="header"] .rail-title { display: none; }
.app[data-rail="header"] .rail-list { overflow: visible; padding: 0; }
.app[data-rail="header"] .rank {
  flex-wrap: nowrap;
  gap: 10px;
  padding: 2px 6px;
  border: 0;
  border-radius: 4px;
  background: none;
}
.app[data-rail="header"] .rank .bar { right: 6px; left: 6px; }
.app[data-rail="header"] .rank-label {
  font-family: inherit;
  font-size: inherit;
  color: var(--dim);
}
.app[data-rail="header"] .rank-peak, .app[data-rail="header"] .rank-note { margin-left: 0; }
.app[data-rail="header"] .rank-error { flex: 1 1 0; min-width: 80px; -webkit-line-clamp: 1; }
.app[data-rail="header"] .dot { margin-left: 0; }

@container (width < 760px) {
  .rail {
    flex-direction: row;
    align-items: stretch;
    border-right: 0;
    border-bottom: 1px solid var(--line);
  }
  .rail-title { display: none; }
  .rail-list { display: flex; padding: 0; overflow: auto hidden; scrollbar-width: none; }
  .rail-list > .chunk { display: flex; flex: none; }
  .rail-list > .chunk:empty { width: calc(var(--rows) * 120px); height: auto; }
  .rail-group { flex: none; align-self: center; padding: 0 4px 0 12px; }
  .rank {
    flex: none;
    min-height: 34px;
    max-width: 260px;
    border-left: 0;
    border-bottom: 2px solid transparent;
  }
  .rank[aria-selected="true"] { border-bottom-color: var(--accent); }
  .app[data-rail="header"] .rail { order: 1; flex: 1 1 100%; }
  .app[data-rail="header"] .rank {
    flex: 0 1 auto;
    min-width: 0;
    max-width: none;
    min-height: 28px;
    border: 0;
  }
  .rank[data-state="error"] { flex-wrap: nowrap; padding-block: 2px; }
  .rank-error { flex: 1 1 0; -webkit-line-clamp: 1; }
}
`;
