// Buttons, the segmented switch, the sheet of keys.

export const controls = `
.button {
  position: relative;
  display: inline-flex;
  align-items: center;
  justify-content: center;
  gap: 6px;
  min-width: 28px;
  height: 30px;
  padding: 0 12px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--surface);
  white-space: nowrap;
  cursor: pointer;
}
.button:hover { background: var(--hover); border-color: var(--faint); }
.button:active { background: var(--raised); }
.button:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
.button:focus-visible { outline-offset: 1px; }
.button.primary { border-color: transparent; background: var(--accent-solid); color: var(--on-accent); }
.button.primary:hover { filter: brightness(1.08); }
.button.plain { height: 28px; padding: 0 6px; border-color: transparent; background: none; color: var(--dim); }
.button.plain:hover { background: var(--raised); color: var(--text); }
.link { padding: 0 2px; border: 0; border-radius: 3px; background: none; color: var(--dim); cursor: pointer; }
.link:hover { color: var(--text); text-decoration: underline; }
.stepper, .segmented, .select {
  display: inline-flex;
  align-items: center;
  height: 26px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--surface);
}
.stepper { max-width: 220px; }
.stepper button {
  display: grid;
  place-items: center;
  width: 24px;
  height: 100%;
  border: 0;
  border-radius: var(--radius);
  background: none;
  color: var(--dim);
  cursor: pointer;
}
.stepper button:hover { background: var(--raised); color: var(--text); }
.stepper .icon { width: 12px; height: 12px; }
.stepper-label { min-width: 40px; overflow: hidden; text-align: center; text-overflow: ellipsis; white-space: nowrap; }
.select { position: relative; }
.select select {
  height: 100%;
  padding: 0 26px 0 10px;
  border: 0;
  border-radius: inherit;
  background: none;
  text-overflow: ellipsis;
  appearance: none;
  cursor: pointer;
}
.select option { background: var(--surface); color: var(--text); }
.select .icon { position: absolute; right: 8px; width: 11px; height: 11px; color: var(--dim); pointer-events: none; }
.segmented { overflow: hidden; }
.segmented button { height: 100%; padding: 0 10px; border: 0; background: none; color: var(--dim); cursor: pointer; }
.segmented button:hover { color: var(--text); }
.segmented button[aria-pressed="true"] { background: var(--raised); color: var(--text); font-weight: 550; }
.sheet {
  width: min(680px, calc(100cqw - 24px));
  max-height: min(640px, calc(100% - 24px));
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
.sheet-head { display: flex; align-items: center; justify-content: space-between; margin-bottom: 8px; font-size: 15px; }
.sheet-columns { columns: 2 260px; column-gap: 32px; }
.sheet section { break-inside: avoid; margin-bottom: 16px; }
.sheet h3 { margin-bottom: 2px; color: var(--dim); font-size: var(--small); font-weight: 500; }
.sheet-row { display: flex; align-items: baseline; gap: 10px; padding: 3px 0; }
.sheet-row dt { flex: 0 0 104px; display: flex; flex-wrap: wrap; gap: 4px; }
kbd {
  padding: 1px 6px;
  border: 1px solid var(--line-strong);
  border-radius: 4px;
  background: var(--raised);
  font: 500 var(--small) / 1.4 var(--sans);
  white-space: nowrap;
}
`;
