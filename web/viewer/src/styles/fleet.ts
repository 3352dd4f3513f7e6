// Many ranks in one picture. Colors of clusters are distinguishable with any color blindness.

export const fleet = `
.app[data-theme="dark"] {
  --cluster-0: #4c8fd6;
  --cluster-1: #d9a441;
  --cluster-2: #54b09a;
  --cluster-3: #c678c9;
  --cluster-4: #8fae4b;
  --cluster-5: #d9756b;
  --cluster-6: #6d7683;
}
.app[data-theme="light"] {
  --cluster-0: #2f74c0;
  --cluster-1: #c58a1a;
  --cluster-2: #2c8d77;
  --cluster-3: #a955ad;
  --cluster-4: #6f8f2a;
  --cluster-5: #c4554a;
  --cluster-6: #8b95a1;
}
.fleet {
  display: grid;
  flex: none;
  grid-template-columns: minmax(0, 1fr) minmax(330px, 40%);
  gap: 8px 24px;
  padding: 8px 14px 10px;
  border-bottom: 1px solid var(--line);
  font-size: 12px;
}
/* In a low or narrow view the table is scrolled to. */
.overview:has(> .fleet) { overflow: hidden auto; }
.overview:has(> .fleet) > .grid-scroll { flex: 1 0 min(75%, 420px); }
.overview:has(> .fleet) > .outliers { flex: none; }
.fleet rect[data-cluster], .fleet .swatch { fill: var(--of); background: var(--of); }
.fleet [data-cluster="0"] { --of: var(--cluster-0); }
.fleet [data-cluster="1"] { --of: var(--cluster-1); }
.fleet [data-cluster="2"] { --of: var(--cluster-2); }
.fleet [data-cluster="3"] { --of: var(--cluster-3); }
.fleet [data-cluster="4"] { --of: var(--cluster-4); }
.fleet [data-cluster="5"] { --of: var(--cluster-5); }
.fleet [data-cluster="6"] { --of: var(--cluster-6); }
.fleet-peaks { display: flex; flex-direction: column; margin: 0; min-width: 0; }
.fleet-peaks figcaption, .fleet-head {
  display: flex;
  align-items: center;
  justify-content: space-between;
  gap: 12px;
  height: 24px;
  overflow: hidden;
  font-size: var(--small);
  white-space: nowrap;
}
.fleet-plot {
  position: relative;
  flex: 1;
  min-height: 84px;
  border-bottom: 1px solid var(--line-strong);
}
.fleet-plot svg { position: absolute; inset: 0; display: block; width: 100%; height: 100%; }
.fleet-bar {
  position: absolute;
  top: 0;
  bottom: 0;
  min-width: 3px;
  padding: 0;
  border: 0;
  background: none;
  cursor: pointer;
}
.fleet-bar:hover { background: var(--tint); }
.fleet-capacity {
  stroke: var(--error);
  stroke-width: 1.5px;
  stroke-dasharray: 4 3;
  vector-effect: non-scaling-stroke;
}
.fleet-limit {
  position: absolute;
  top: -2px;
  padding: 0 6px;
  color: var(--error);
  font-size: var(--small);
  white-space: nowrap;
}
.fleet-limit[data-side="left"] { transform: translateX(-100%); }
.fleet-ticks { position: relative; height: 18px; overflow: hidden; }
.fleet-ticks span {
  position: absolute;
  top: 3px;
  color: var(--dim);
  font: 400 var(--small) / 14px var(--mono);
  transform: translateX(-50%);
  white-space: nowrap;
}
.fleet-ticks span[data-end="first"] { transform: none; }
.fleet-ticks span[data-end="last"] { transform: translateX(-100%); }
.fleet-clusters { min-width: 0; }
.fleet-head .field { display: flex; align-items: center; gap: 6px; color: var(--dim); }
.fleet-head input { width: 78px; height: 22px; font: 400 var(--small) / 1 var(--mono); }
.fleet-head input[aria-invalid="true"] { border-color: var(--error); }
.fleet-sizes { color: var(--dim); font-size: var(--small); }
.fleet-sizes[data-fits="false"] { color: var(--error); }
.fleet-table { max-height: 102px; overflow: auto; }
.fleet-table table { width: 100%; border-collapse: collapse; }
.fleet-table thead th {
  position: sticky;
  top: 0;
  height: 20px;
  background: var(--surface);
  color: var(--dim);
  font-size: var(--small);
  font-weight: 400;
}
.fleet-table th:first-child {
  width: 100%;
  max-width: 0;
  overflow: hidden;
  font-weight: 400;
  text-align: left;
  text-overflow: ellipsis;
}
.fleet-table :is(td, thead th:not(:first-child)) {
  padding: 0 0 0 14px;
  font: 400 var(--small) / 1 var(--mono);
  text-align: right;
  white-space: nowrap;
}
.fleet-table tbody th { height: 20px; white-space: nowrap; }
.fleet-table .link { color: inherit; }
.fleet-table .swatch { display: inline-block; margin-right: 4px; }
.fleet-table tr[data-chosen="true"] { background: var(--tint); }
.fleet-place { margin-left: 10px; color: var(--dim); font-family: var(--mono); }
.fleet-iterations {
  grid-column: 1 / -1;
  display: grid;
  grid-template-columns: minmax(0, 1fr) auto;
  align-items: center;
  gap: 16px;
}
.fleet-course { position: relative; }
.fleet-course svg {
  display: block;
  width: calc(100% - 16px);
  height: 34px;
  margin: 0 8px;
  overflow: visible;
}
.fleet-course path { fill: none; stroke-width: 1.5px; vector-effect: non-scaling-stroke; }
path.fleet-max { stroke: var(--warn); }
path.fleet-median { stroke: var(--accent); }
.fleet-course line { stroke: var(--faint); vector-effect: non-scaling-stroke; }
.fleet-course input { display: block; width: 100%; margin: 2px 0 0; accent-color: var(--accent); }
.fleet-iterations dl { display: grid; gap: 1px; min-width: 150px; }
.fleet-iterations dt { font-weight: 600; }
.fleet-iterations dd { color: var(--dim); font-size: var(--small); }
.fleet-iterations dd b { color: var(--text); font: 400 var(--small) / 1 var(--mono); }
.fleet-iterations dd i { display: inline-block; width: 10px; height: 2px; vertical-align: 3px; }
i.fleet-max { background: var(--warn); }
i.fleet-median { background: var(--accent); }
.rank-filter input { width: 210px; height: 24px; font-size: 12px; }

@container (width < 1120px) {
  .fleet { grid-template-columns: minmax(0, 1fr); }
  .fleet-plot { min-height: 60px; }
  .fleet-table { max-height: 82px; }
}
@container (width < 760px) {
  .rank-filter input { width: 160px; }
}
`;
