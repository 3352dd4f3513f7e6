// Styles of the views, which are loaded with their code.

import { ab } from "./ab.js";
import { compare } from "./compare.js";
import { findings } from "./findings.js";
import { fleet } from "./fleet.js";
import { folded } from "./folded.js";
import { groups } from "./groups.js";
import { lists } from "./lists.js";
import { map } from "./map.js";
import { matrix } from "./matrix.js";
import { modules } from "./modules.js";
import { overlays } from "./overlays.js";
import { peak } from "./peak.js";
import { pinned } from "./pinned.js";
import { plotHead } from "./plot-head.js";
import { source } from "./source.js";
import { tables } from "./tables.js";
import { whatIf } from "./what-if.js";

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
