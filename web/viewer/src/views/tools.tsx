// The toolbar of the timeline: coloring, lines, GPU memory and pictures.

import type { ColorBy, GroupBy } from "../generated/protocol.js";
import { COLORS, GROUPS } from "../view-selection.js";
import { Capacity } from "./capacity.js";
import { Choice } from "./controls.js";
import { Lines } from "./legend.js";
import { PictureButtons } from "./picture-buttons.js";
import type { ViewUses } from "./workspace.js";

const COLOR_OPTIONS = Object.entries(COLORS) as [ColorBy, string][];
const GROUP_OPTIONS = Object.entries(GROUPS) as [GroupBy, string][];

type ToolsProperties = ViewUses<
  "selection" | "viewSelection" | "plots" | "appearance" | "queries" | "whatIfs"
>;

export function TimelineTools(owners: ToolsProperties) {
  const { selection, viewSelection, plots, appearance } = owners;
  const isSimulated = Boolean(owners.whatIfs.curve.value.value?.path);
  return (
    <>
      <Choice label="Group" value={viewSelection.group} options={GROUP_OPTIONS} testid="group-by" />
      <Choice label="Color" value={viewSelection.color} options={COLOR_OPTIONS} testid="color-by" />
      <Lines {...owners} />
      <Capacity viewSelection={viewSelection} />
      <span class="toolbar-end">
        <PictureButtons
          selection={selection}
          appearance={appearance}
          plot={plots.timeline.value}
          name="timeline"
          simulated={isSimulated ? viewSelection.scenario.value : null}
        />
      </span>
    </>
  );
}
