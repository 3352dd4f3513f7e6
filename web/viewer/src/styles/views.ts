// Styles of the views, which are loaded with their code.

import map from "../places/allocator/map.css.js";
import modules from "../places/code/modules.css.js";
import source from "../places/code/source.css.js";
import compare from "../places/compare/compare.css.js";
import fleet from "../places/ranks/fleet.css.js";
import matrix from "../places/ranks/matrix.css.js";
import summary from "../places/summary/style.css.js";
import ab from "../places/timeline/ab.css.js";
import folded from "../places/timeline/folded.css.js";
import peak from "../places/timeline/peak.css.js";
import pinned from "../places/timeline/pinned.css.js";
import plotHead from "../places/timeline/plot-head.css.js";
import findings from "./findings.css.js";
import groups from "./groups.css.js";
import lists from "./lists.css.js";
import overlays from "./overlays.css.js";
import tables from "./tables.css.js";

export const style = [
  tables,
  overlays,
  plotHead,
  lists,
  findings,
  groups,
  compare,
  map,
  modules,
  folded,
  ab,
  matrix,
  fleet,
  pinned,
  peak,
  source,
  summary,
];
