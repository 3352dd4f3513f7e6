// The map of segments.

export const map = `
.map-overlay { pointer-events: none; }
.map-head {
  position: absolute;
  top: 0;
  left: 0;
  display: flex;
  align-items: baseline;
  gap: 0 14px;
  max-width: 100%;
  padding-top: 3px;
  overflow: hidden;
  color: var(--dim);
  font-size: var(--small);
  white-space: nowrap;
}
.map-head b {
  min-width: 0;
  overflow: hidden;
  color: var(--text);
  font-weight: 600;
  text-overflow: ellipsis;
}
.map-head span { flex: none; }
.map-pin {
  position: absolute;
  top: 0;
  left: 0;
  min-width: 7px;
  padding: 0;
  border: 0;
  border-radius: 2px;
  background: none;
  box-shadow: 0 0 0 2px var(--warn);
  cursor: pointer;
  pointer-events: auto;
}
.map-pins {
  flex: none;
  width: 250px;
  overflow: auto;
  padding: 8px 10px 12px;
  border-left: 1px solid var(--line);
  font-size: 12px;
}
.map .plot { container: map / inline-size; margin-left: 14px; }
.map-kept {
  display: block;
  width: 100%;
  margin: 0 -6px;
  padding: 4px 6px;
  border: 0;
  border-radius: 3px;
  background: none;
  text-align: left;
  cursor: pointer;
}
.map-kept:hover { background: var(--hover); }
.map-pins .dim { margin: 2px 0 8px; font-size: var(--small); }

@container map (width < 680px) {
  .map-head :is([data-column="free"], [data-column="segments"]) { display: none; }
}
@container map (width < 480px) {
  .map-head [data-column="active"] { display: none; }
}
@container (width < 1120px) {
  .map-pins { width: 200px; }
}
@container (width < 760px) {
  .map .segments-body { flex-direction: column; }
  .map-pins {
    width: auto;
    max-height: 30%;
    border-top: 1px solid var(--line);
    border-left: 0;
  }
}
`;
