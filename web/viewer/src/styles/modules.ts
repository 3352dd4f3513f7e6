// Memory by module.

export const modules = `
.modules {
  container: modules / inline-size;
  display: flex;
  flex: 1;
  flex-direction: column;
  min-width: 0;
  min-height: 0;
}
.modules-text {
  flex: none;
  max-width: 110ch;
  margin: 0;
  padding: 8px 14px;
  color: var(--dim);
}
.module-note { color: var(--dim); }
.module-bar {
  display: flex;
  width: 100%;
  height: 8px;
  border-radius: 2px;
  overflow: hidden;
  background: var(--sunk);
}
.modules-body { display: flex; flex: 1; min-height: 0; }
.shapes {
  flex: 0 0 272px;
  padding: 4px 12px 12px;
  overflow: auto;
  border-left: 1px solid var(--line);
}
.shapes h3 { margin: 4px 0 6px; }
.shapes li.share { cursor: default; }
.shapes .share-bar { background: var(--segment); }
.dims {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 12px;
  margin-bottom: 8px;
  font: 400 var(--small) / 1.5 var(--mono);
}
.widths { margin: 2px 0 10px; }
.widths .field { display: flex; }
.widths .field input {
  flex: 1;
  width: auto;
  min-width: 0;
  max-width: 360px;
  font-family: var(--mono);
}
.widths p { margin: 4px 0 0; font-size: var(--small); }
.widths .fault { color: var(--error); }
@container modules (width < 900px) {
  .modules-body { flex-direction: column; }
  .shapes { flex: 0 0 auto; max-height: 32%; border-top: 1px solid var(--line); border-left: 0; }
}
`;
