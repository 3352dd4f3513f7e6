// Between the toolbar and the timeline: the legend, steps and phases, reserved and dead bytes.

import type { ViewUses } from "../../views/workspace.js";
import { DeadLane, ReservedLane } from "./counter-lane.js";
import { LegendLine } from "./legend.js";
import { PhaseLane } from "./phase-lane.js";

type PlotHeadProperties = ViewUses<
  "selection" | "filters" | "plots" | "appearance" | "viewSelection" | "queries" | "cards"
>;

export function PlotHead(owners: PlotHeadProperties) {
  return (
    <div class="plot-head">
      <LegendLine {...owners} />
      <PhaseLane {...owners} />
      <ReservedLane {...owners} />
      <DeadLane {...owners} />
    </div>
  );
}
