// The matrix of ranks. Its two colors are distinguishable with any color blindness.

export const matrix = `
.app[data-theme="dark"] {
  --cell-below: #4fa8e8;
  --cell-above: #f09a3a;
  --cell-middle: #262c34;
  --cell-none: #11151a;
}
.app[data-theme="light"] {
  --cell-below: #0a63a8;
  --cell-above: #b84a00;
  --cell-middle: #e4e8ed;
  --cell-none: #ffffff;
}
.matrix { display: flex; flex-direction: column; flex: 1; min-height: 0; min-width: 0; }
.matrix .toolbar > span:first-child { font-weight: 600; white-space: normal; }
.matrix-legend {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 2px 8px;
  margin-left: auto;
  color: var(--dim);
  font-size: var(--small);
}
.matrix-scale { display: flex; gap: 1px; }
.matrix-scale i { width: 16px; height: 10px; }
.matrix-scale i:nth-child(5) { width: 22px; }
.matrix-none { display: flex; align-items: center; gap: 5px; margin-left: 4px; }
.matrix-none i {
  width: 14px;
  height: 10px;
  border: 1px solid var(--line-strong);
  background: var(--cell-none);
}
.matrix-outliers {
  flex: none;
  max-height: 96px;
  overflow: auto;
  padding: 6px 14px;
  border-bottom: 1px solid var(--line);
}
.matrix-outliers li { padding-left: 14px; text-indent: -14px; overflow-wrap: anywhere; }
.matrix-outliers li::before { content: "\\25B8"; margin-right: 5px; color: var(--warn); }
.matrix-scroll { flex: 1; min-height: 0; overflow: hidden auto; padding: 0 14px 10px 0; }
.matrix-grid {
  display: grid;
  grid-template-columns: minmax(230px, 34%) minmax(0, 1fr);
  column-gap: 10px;
}
.matrix-corner, .matrix-head {
  position: sticky;
  top: 0;
  z-index: 2;
  height: 44px;
  background: var(--surface);
  color: var(--dim);
  font-size: var(--small);
}
.matrix-corner { display: flex; align-items: end; padding: 0 0 4px 14px; }
.matrix-corner span:first-child { flex: 1; }
.matrix-corner span + span { width: 70px; text-align: right; }
.matrix-cluster {
  position: absolute;
  top: 6px;
  height: 18px;
  padding: 0 2px;
  overflow: hidden;
  text-align: center;
  white-space: nowrap;
}
.matrix-cluster::after {
  content: "";
  position: absolute;
  right: 1px;
  bottom: 0;
  left: 1px;
  height: 4px;
  border: 1px solid var(--faint);
  border-bottom: 0;
}
.matrix-cluster span {
  display: block;
  overflow: hidden;
  line-height: 13px;
  text-overflow: ellipsis;
}
.matrix-rank {
  position: absolute;
  top: 27px;
  color: var(--dim);
  font: 400 var(--small) / 14px var(--mono);
  transform: translateX(-50%);
}
.matrix-rank[data-outlier="true"] { color: var(--warn); font-weight: 600; }
.matrix-rank[data-at="true"] { z-index: 1; background: var(--surface); color: var(--text); }
.matrix-rows li {
  display: flex;
  align-items: center;
  height: 20px;
  padding-left: 14px;
  font-size: 12px;
}
.matrix-rows li:hover { background: var(--hover); }
.matrix-rows li[data-chosen="true"] { background: var(--tint); }
.matrix-rows [data-column] {
  flex: none;
  width: 70px;
  font: 400 var(--small) / 1 var(--mono);
  text-align: right;
}
.matrix-rows [data-column="median"] { color: var(--dim); }
.matrix-site {
  flex: 1;
  min-width: 0;
  padding: 0;
  border: 0;
  background: none;
  overflow: hidden;
  font: 400 12px / 18px var(--mono);
  text-align: left;
  text-overflow: ellipsis;
  white-space: nowrap;
}
button.matrix-site { cursor: pointer; }
button.matrix-site:hover { text-decoration: underline; }
.matrix-cells { position: relative; min-width: 0; }
.matrix-cells canvas { display: block; width: 100%; font-family: var(--mono); cursor: pointer; }
.matrix-cells i { position: absolute; pointer-events: none; }
.matrix-edge { top: -3px; bottom: 0; width: 2px; margin-left: -1px; background: var(--text); }
.matrix-cursor { box-shadow: 0 0 0 2px var(--accent); border-radius: 1px; }
.matrix-hover { box-shadow: 0 0 0 1px var(--text); }
.matrix-omitted { padding: 6px 14px 0; font-size: 12px; }

@container (width < 1120px) {
  .matrix-grid { grid-template-columns: minmax(210px, 38%) minmax(0, 1fr); }
  .matrix-corner span + span, .matrix-rows [data-column] { width: 66px; }
  .matrix-corner span:nth-child(2), .matrix-rows [data-column="median"] { display: none; }
}
@container (width < 760px) {
  .matrix-grid { grid-template-columns: minmax(150px, 40%) minmax(0, 1fr); }
  .matrix-legend { margin-left: 0; }
}
`;
