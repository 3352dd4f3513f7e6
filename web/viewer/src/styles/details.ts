// The details pane.

export const details = `
.details { overflow: auto; padding: 10px 16px 24px; border-left: 1px solid var(--line); }
.details-kind {
  display: flex;
  align-items: center;
  gap: 7px;
  min-height: 24px;
  color: var(--dim);
  font-size: var(--small);
}
.details-kind .button { margin: 0 -8px 0 auto; height: 24px; }
.details-kind .icon { width: 12px; height: 12px; }
.details-size { font-size: 21px; line-height: 1.3; font-weight: 650; letter-spacing: -0.01em; }
.details-exact { color: var(--dim); font-family: var(--mono); font-size: 12px; }
.details-file { overflow-wrap: anywhere; font-size: 15px; line-height: 1.35; }
.rows { margin-top: 12px; }
.row { display: flex; gap: 10px; padding: 2px 0; }
.row dt { flex: 0 0 108px; color: var(--dim); }
.row dd {
  flex: 1;
  min-width: 0;
  overflow-wrap: anywhere;
  text-wrap: balance;
  font-family: var(--mono);
  font-size: 12px;
  line-height: 19px;
}
.hint { margin-top: 16px; padding-top: 12px; border-top: 1px solid var(--line); color: var(--dim); }
.stack { margin-top: 18px; }
.stack-head {
  display: flex;
  align-items: baseline;
  gap: 12px;
  padding-bottom: 4px;
}
.stack-head h3 { flex: 1; }
.stack-head .link { flex: none; font-size: 12px; }
.stack-note { padding-bottom: 6px; color: var(--warn); font-size: 12px; }
.frame {
  display: flex;
  align-items: baseline;
  justify-content: space-between;
  gap: 10px;
  width: 100%;
  padding: 4px 0;
}
.frame { border: 0; background: none; text-align: left; cursor: pointer; }
.frame:hover { background: var(--hover); }
.frame-name {
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  font-weight: 450;
}
.frame-place {
  flex: none;
  max-width: 62%;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  color: var(--dim);
  font-family: var(--mono);
  font-size: var(--small);
}
.frame[data-framework="true"] span { color: var(--faint); }
.frame-row { position: relative; border-bottom: 1px solid var(--line); }
.frame-source {
  display: block;
  width: 100%;
  padding: 0 0 4px;
  overflow: hidden;
  border: 0;
  background: none;
  color: var(--dim);
  font: 400 var(--small) / 1.45 var(--mono);
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
  cursor: pointer;
}
.frame-source code { font: inherit; }
.frame-source:hover { background: var(--hover); color: var(--text); }
.frame-source[data-state="unsure"] { color: var(--faint); font-style: italic; }
.frame-open {
  position: absolute;
  top: 3px;
  right: -14px;
  padding: 4px 1px;
  border: 0;
  background: none;
  color: var(--dim);
  opacity: 0;
  cursor: pointer;
}
.frame-row:hover .frame-open, .frame-open:focus-visible { opacity: 1; }
.frame-open .icon { width: 12px; height: 12px; }

@container (width < 1120px) {
  .details { padding-inline: 13px; }
}
@container (width < 760px) {
  .row dt { flex-basis: 124px; }
  .details { border-left: 0; border-top: 1px solid var(--line); }
}
`;
