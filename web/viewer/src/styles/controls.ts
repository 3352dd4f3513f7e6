// Buttons, the segmented switch, the search box.

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
.button.primary {
  border-color: transparent;
  background: var(--accent-solid);
  color: var(--on-accent);
}
.button.primary:hover { filter: brightness(1.08); }
.button.plain {
  height: 28px;
  padding: 0 6px;
  border-color: transparent;
  background: none;
  color: var(--dim);
}
.button.plain:hover { background: var(--raised); color: var(--text); }
.button.plain:disabled { background: none; color: var(--faint); opacity: 0.55; cursor: default; }
.menu { position: relative; flex: none; }
.menu-button { gap: 4px; }
.menu-button .icon { width: 11px; height: 11px; }
.menu-button[aria-expanded="true"] { background: var(--raised); color: var(--text); }
.menu-panel {
  position: absolute;
  top: calc(100% + 4px);
  z-index: 20;
  display: flex;
  flex-direction: column;
  min-width: 168px;
  padding: 4px;
  border-radius: var(--radius);
  background: var(--surface);
  box-shadow: var(--shadow);
}
.menu-panel[hidden] { display: none; }
.menu-panel[data-align="start"] { left: 0; }
.menu-panel[data-align="end"] { right: 0; }
.menu-item {
  justify-content: flex-start;
  gap: 9px;
  width: 100%;
  height: 30px;
  padding: 0 10px;
  border-color: transparent;
  background: none;
  text-align: left;
}
.menu-item .icon { width: 14px; height: 14px; color: var(--dim); }
.menu-item:hover, .menu-item:has(:focus-visible) { border-color: transparent; }
.middle-cut { display: flex; min-width: 0; white-space: pre; }
.middle-cut > :first-child { overflow: hidden; text-overflow: ellipsis; }
.middle-cut > :last-child { flex: none; }
.link {
  padding: 0 2px;
  border: 0;
  border-radius: 3px;
  background: none;
  color: var(--dim);
  cursor: pointer;
}
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
.stepper-label {
  min-width: 40px;
  overflow: hidden;
  text-align: center;
  text-overflow: ellipsis;
  white-space: nowrap;
}
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
.select .icon {
  position: absolute;
  right: 8px;
  width: 11px;
  height: 11px;
  color: var(--dim);
  pointer-events: none;
}
.search { position: relative; flex: 0 1 260px; min-width: 120px; }
.search .icon {
  position: absolute;
  top: 6px;
  left: 7px;
  width: 13px;
  height: 13px;
  color: var(--faint);
  pointer-events: none;
}
.search input {
  width: 100%;
  height: 26px;
  padding: 0 8px 0 26px;
  border: 1px solid var(--line-strong);
  border-radius: var(--radius);
  background: var(--surface);
  color: var(--text);
  font: inherit;
}
.search input::placeholder { color: var(--faint); opacity: 1; }
.search input::-webkit-search-cancel-button { display: none; }
.found {
  position: absolute;
  top: 5px;
  right: 6px;
  padding: 0 5px;
  border-radius: 3px;
  background: var(--raised);
  color: var(--dim);
  font-size: var(--small);
  line-height: 16px;
}
.segmented { overflow: hidden; }
.segmented-label { padding: 0 2px 0 9px; color: var(--faint); }
.segmented-label + button { padding-left: 6px; }
.segmented button {
  height: 100%;
  padding: 0 10px;
  border: 0;
  background: none;
  color: var(--dim);
  cursor: pointer;
}
.segmented button:hover { color: var(--text); }
.segmented button[aria-pressed="true"] {
  background: var(--raised);
  color: var(--text);
  font-weight: 550;
}
`;
