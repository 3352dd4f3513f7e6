// Styles of the views, which are loaded with their code.

import ab from "./ab.css.js";
import compare from "./compare.css.js";
import findings from "./findings.css.js";
import fleet from "./fleet.css.js";
import folded from "./folded.css.js";
import groups from "./groups.css.js";
import lists from "./lists.css.js";
import map from "./map.css.js";
import matrix from "./matrix.css.js";
import modules from "./modules.css.js";
import overlays from "./overlays.css.js";
import peak from "./peak.css.js";
import pinned from "./pinned.css.js";
import plotHead from "./plot-head.css.js";
import source from "./source.css.js";
import tables from "./tables.css.js";
import whatIf from "./what-if.css.js";

export const style = [
  tables,
  overlays,
  plotHead,
  lists,
  findings,
  groups,
  compare,
  whatIf,
  map,
  modules,
  folded,
  ab,
  matrix,
  fleet,
  pinned,
  peak,
  source,
];
