// The row of filters.

export const chips = `
.chips {
  display: flex;
  align-items: center;
  gap: 8px;
  flex: none;
  min-height: 32px;
  padding: 4px 14px;
  border-bottom: 1px solid var(--line);
  background: var(--surface);
  font-size: var(--small);
}
.chips ul {
  display: flex;
  flex: 0 1 auto;
  flex-wrap: wrap;
  gap: 4px;
  min-width: 0;
  margin: 0;
  padding: 0;
  list-style: none;
}
.filter-chip {
  display: inline-flex;
  align-items: center;
  max-width: 340px;
  height: 22px;
  border: 1px solid var(--line-strong);
  border-radius: 11px;
  background: var(--tint);
}
.filter-text {
  min-width: 0;
  padding-left: 9px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.filter-key { margin-right: 5px; color: var(--dim); }
.filter-chip button {
  display: grid;
  flex: none;
  place-items: center;
  width: 22px;
  height: 20px;
  padding: 0;
  border: 0;
  border-radius: 0 10px 10px 0;
  background: none;
  color: var(--dim);
  cursor: pointer;
}
.filter-chip button:hover { color: var(--text); }
.filter-chip .icon { width: 10px; height: 10px; }
.chips-found { color: var(--dim); white-space: nowrap; }
.chips-clear { margin-left: auto; white-space: nowrap; }
@container (width < 760px) {
  .chips { flex-wrap: wrap; padding-inline: 10px; }
}
`;
